"""Test the search for the nearest tokens and words of a query. Results are compared
with those of a simple implementation."""

import numpy as np
import pytest
import spacy
from helpers.analysis import cosines, make_index, random_sentences, save_vectors

from spacy_elmo.analysis import nearest_contexts
from spacy_elmo.analysis.nearest_contexts import choose_layers, find_neighbors
from spacy_elmo.analysis.neighbor_queries import Query, make_query

NAMES = ["0", "1", "2", "mix"]


def simple_neighbors(bilm, sentences, query, layer, top):
    """Find neighbours without an index, by comparing the query with all tokens."""
    vectors = bilm.embed([query.words])[0][:, query.position]
    target = vectors.mean(0) if layer == "mix" else vectors[layer]
    found = {}
    for words, layers in zip(sentences, bilm.embed(sentences)):
        table = layers.mean(0) if layer == "mix" else layers[layer]
        for position, cosine in enumerate(cosines(table, target)):
            if (words, position) != query:
                found[" ".join(words), position] = cosine
    return sorted(found.items(), key=lambda item: -item[1])[:top]


def test_neighbors_agree_with_the_simple_way(bilm, tmp_path):
    sentences = random_sentences(60)
    index = make_index(bilm, tmp_path, sentences)
    queries = [Query(sentences[7], len(sentences[7]) - 1), Query(["new", "ban"], 0)]
    results = find_neighbors(bilm, index, queries, layers=NAMES, top=6)
    for query, result in zip(queries, results):
        assert result["word"] == query.words[query.position]
        assert result["sentence"] == " ".join(query.words)
        assert result["position"] == query.position
        assert [found["layer"] for found in result["layers"]] == [0, 1, 2, "mix"]
        for found in result["layers"]:
            expected = simple_neighbors(bilm, sentences, query, found["layer"], 6)
            similar = [item["cosine"] for item in found["neighbors"]]
            np.testing.assert_allclose(similar, [c for _, c in expected], atol=1e-3)
            for item in found["neighbors"]:
                assert item["sentence"].split(" ")[item["position"]] == item["word"]
            if found["layer"] != 0:  # there, occurrences of a word are equally near
                names = [(n["sentence"], n["position"]) for n in found["neighbors"]]
                assert names == [name for name, _ in expected]


def test_query_is_left_out_and_repeated_sentences_count_once(bilm, tmp_path):
    again = ["a", "bat", "flew", "at", "the", "bat"]
    text = [again] * 300 + [["a", "bat", "slept"]] * 50 + [["stones"]]
    index = make_index(bilm, tmp_path, text)
    [result] = find_neighbors(bilm, index, [Query(again, 1)], layers=["0"], top=30)
    [found] = result["layers"]
    names = [(n["sentence"], n["position"]) for n in found["neighbors"]]
    assert len(names) == len(set(names)) == 6 + 3 + 1 - 1  # all but the query
    assert (" ".join(again), 1) not in names
    assert set(names[:2]) == {(" ".join(again), 5), ("a bat slept", 1)}
    [result] = find_neighbors(bilm, index, [Query(again, 1)], layers=["2"], top=3)
    assert len(result["layers"][0]["neighbors"]) == 3


@pytest.mark.parametrize("words_at_a_time", [2, 10**6])
def test_words_without_context_by_layer_0(bilm, tmp_path, monkeypatch, words_at_a_time):
    monkeypatch.setattr(nearest_contexts, "CHUNK_WORDS", words_at_a_time)
    index = make_index(bilm, tmp_path, random_sentences(40))
    for word in ("ban", "unheard"):
        query = Query([word], 0)
        [result] = find_neighbors(bilm, index, [query], layers=["2"], top=5)
        others = sorted({*index.words} - {word})
        vectors = np.stack([bilm.embed([[other]])[0][0, 0] for other in others])
        expected = cosines(vectors, bilm.embed([[word]])[0][0, 0])
        order = np.argsort(-expected)[:5]
        assert [item["word"] for item in result["static"]] == [others[k] for k in order]
        similar = [item["cosine"] for item in result["static"]]
        np.testing.assert_allclose(similar, expected[order], atol=1e-3)


def test_words_without_context_by_static_vectors(bilm, tmp_path):
    index = make_index(bilm, tmp_path, [["cat", "dog", "car", "new", "kitten"]])
    folder = save_vectors(
        tmp_path / "nlp",
        {"cat": [1, 0], "kitten": [3, 1], "dog": [2, 2], "car": [0, 5], "cats": [1, 0]},
    )
    vocab = spacy.load(folder).vocab
    queries = [Query(["the", "cat"], 1), Query(["new"], 0)]
    first, second = find_neighbors(bilm, index, queries, layers=["2"], static=vocab)
    # All words of the text that have a vector are found, except for the query itself.
    assert [item["word"] for item in first["static"]] == ["kitten", "dog", "car"]
    similar = [item["cosine"] for item in first["static"]]
    np.testing.assert_allclose(similar, [3 / 10**0.5, 0.5**0.5, 0], atol=1e-6)
    assert second["static"] == []


def test_words_without_a_static_vector_take_no_place(bilm, tmp_path):
    index = make_index(bilm, tmp_path, [["a", "cat", "and", "no", "dog", "here"]])
    folder = save_vectors(tmp_path / "nlp", {"cat": [1, 0], "dog": [-1, 1]})
    (found,) = find_neighbors(
        bilm,
        index,
        [Query(["cat"], 0)],
        layers=["2"],
        top=1,
        static=spacy.load(folder).vocab,
    )
    assert [item["word"] for item in found["static"]] == ["dog"]


def test_position_of_the_word_in_the_query():
    words = ["the", "bank", "of", "the", "bank"]
    assert make_query(words, "bank").position == 1
    assert make_query(words, "bank", 4).position == 4
    with pytest.raises(ValueError, match="no 'bank' at position 2 .* expected 1 or 4"):
        make_query(words, "bank", 2)
    with pytest.raises(
        ValueError, match="found no 'Bank' in the query; expected one of its words: the"
    ):
        make_query(words, "Bank")


def test_choice_of_layers():
    assert choose_layers(NAMES, None) == ["2"]
    assert choose_layers(NAMES, "all") == NAMES
    assert choose_layers(NAMES, "mix") == ["mix"]
    with pytest.raises(
        ValueError, match="found --layer 3; expected 'all' or one of 0, 1"
    ):
        choose_layers(NAMES, "3")
