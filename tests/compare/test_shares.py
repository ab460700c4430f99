from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.compare.output_folder import OutputFolder
from spacy_elmo.compare.shares import choose_docs, write_share
from spacy_elmo.compare.training_run import TrainingRun
from spacy_elmo.compare.variants import find_variants


@pytest.mark.parametrize(
    "share, name",
    [(1.0, "1"), (0.1, "0.1"), (0.01, "0.01"), (1e-05, "1e-05")]
    + [(share, str(share)) for share in (0.1234561, 0.1234564)],
)
def test_each_share_has_a_file_of_its_own(share, name):
    folder = OutputFolder(Path("output"), print)
    assert folder.share("f" * 20, share).name == f"{'f' * 12}-{name}.spacy"
    (variant,) = find_variants(["baseline"])
    assert TrainingRun(variant, share, 3, {}, "", {}).name == f"baseline-{name}-3"


def test_a_damaged_share_is_written_again(tmp_path):
    path = tmp_path / "share.spacy"
    docs = [Doc(Vocab(), words=[word]) for word in "abcd"]
    assert write_share(docs, 0.5, path) == (2, 2)
    expected = path.read_bytes()
    path.write_bytes(b"damaged")
    write_share(docs, 0.5, path)
    assert path.read_bytes() == expected


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
