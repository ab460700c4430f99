from spacy_elmo.compare.shares import choose_docs


def test_shares_are_nested():
    for n_docs in (1, 7, 1000):
        last = list(range(n_docs))
        assert choose_docs(n_docs, 1.0) == last
        for share in (0.5, 0.1, 0.01):
            chosen = choose_docs(n_docs, share)
            assert chosen == choose_docs(n_docs, share) == sorted(set(chosen))
            assert set(chosen) <= set(last)
            assert len(chosen) == max(1, round(share * n_docs))
            last = chosen
