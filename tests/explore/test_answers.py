"""Test the answers to the page's questions, without a server."""

import json

import numpy as np
import pytest
import spacy
from helpers.analysis import cosines, make_bilm, make_index, random_sentences
from helpers.explore import TEXT, WORDS, make_bilm_with_softmax, make_explorer

from spacy_elmo.explore.answers import (
    TOP,
    answer_heat_map,
    answer_neighbors,
    answer_predictions,
    answer_surprisal,
    answer_text,
    describe,
)
from spacy_elmo.explore.corpus_search import CorpusSearch
from spacy_elmo.explore.explorer import ExploredBiLM, Explorer
from spacy_elmo.explore.page_requests import (
    BadRequest,
    HeatMapRequest,
    NeighborsRequest,
    SentenceRequest,
    TextRequest,
    WordRequest,
)
from spacy_elmo.explore.vector_cache import VectorCache

SINGLE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
MIXES = [*SINGLE, [1, 1, 1], [0.2, 0, 0.7]]


def ask_neighbors(explorer, weights, place="typed", text=TEXT, sentence=0, word=1):
    request = NeighborsRequest(
        text=text, sentence=sentence, word=word, weights=weights, place=place
    )
    return answer_neighbors(explorer, request)["answers"]


def mix(layers, weights):
    """Mix layers of words as simply as possible: (n_layers, n, width) to (n, width)."""
    layers = layers.astype(np.float64)
    layers = layers / np.linalg.norm(layers, axis=-1, keepdims=True)
    return sum(weight * layer for weight, layer in zip(weights, layers))


# Sentences


def words_of(explorer, text):
    return answer_text(explorer, TextRequest(text=text))["sentences"]


def test_text_is_split_into_sentences_and_words():
    explorer = make_explorer()
    text = "  I can't.  You can!\n\n\tno end\nA\u2028B"
    first, second, third, *rest = words_of(explorer, text)
    assert first == {
        "words": ("I", "ca", "n't", "."),
        "spaces": (True, False, False, False),
    }
    assert second["words"] == ("You", "can", "!")
    assert third == {"words": ("no", "end"), "spaces": (True, False)}
    assert [each["words"] for each in rest] == [("A",), ("B",)]
    assert words_of(explorer, " \n ") == words_of(explorer, "") == []


def test_several_spaces_are_one():
    [sentence] = words_of(make_explorer(), "so   far away")
    assert sentence == {"words": ("so", "far", "away"), "spaces": (True, True, False)}


def test_korean_is_split_by_its_own_tokenizer():
    bilm = make_bilm(lang="ko")
    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
    nlp = spacy.blank("ko", config=config)
    explorer = Explorer([ExploredBiLM("ko", bilm)], nlp)
    assert describe(explorer)["lang"] == "ko"
    [sentence] = words_of(explorer, "눈이 내린다.")
    assert sentence == {
        "words": ("눈이", "내린다", "."),
        "spaces": (True, False, False),
    }


@pytest.mark.parametrize(
    "text, code", [("a\n" * 201, "too_many_sentences"), ("a " * 2001, "too_many_words")]
)
def test_too_much_text_is_refused(text, code):
    with pytest.raises(BadRequest, match="expected at most") as caught:
        words_of(make_explorer(), text)
    assert caught.value.code == code and caught.value.status == 413


# Nearest contexts


@pytest.mark.parametrize("weights", MIXES)
def test_nearest_typed_words_are_those_with_the_largest_cosines(weights):
    explorer = make_explorer()
    [found] = ask_neighbors(explorer, weights)
    sentences = [each["words"] for each in words_of(explorer, TEXT)]
    layers = make_bilm().embed(sentences)
    vectors = mix(np.concatenate(layers, 1), weights)
    places = [(s, w) for s, words in enumerate(sentences) for w in range(len(words))]
    expected = dict(zip(places, cosines(vectors, vectors[1])))
    del expected[0, 1]  # the word itself
    best = sorted(expected, key=lambda place: -expected[place])
    assert [(each["sentence"], each["position"]) for each in found] == best[:TOP]
    assert [each["cosine"] for each in found] == pytest.approx(
        [expected[place] for place in best[:TOP]], abs=1e-4
    )


def test_a_neighbor_is_shown_in_its_sentence():
    found = ask_neighbors(make_explorer(), [1, 0, 0])[0][0]
    assert (found["sentence"], found["position"], found["cosine"]) == (1, 3, 1)
    assert found["before"] == "He threw a " and found["word"] == "stick"
    assert found["after"] == " and a stone."


def test_a_long_context_is_shortened():
    words = [f"w{n}" for n in range(50)]
    text = f"{' '.join(words)}\nw25"
    found = ask_neighbors(make_explorer(), [1, 0, 0], text=text, sentence=1, word=0)
    best = found[0][0]
    assert best["before"] == "… " + "".join(f"w{n} " for n in range(11, 25))
    assert best["after"] == "".join(f" w{n}" for n in range(26, 40)) + " …"


def test_a_single_word_has_no_neighbors():
    explorer = make_explorer()
    assert ask_neighbors(explorer, [0, 0, 1], text="alone", word=0) == [[]]


@pytest.fixture
def indexed(tmp_path):
    bilm = make_bilm()
    sentences = [*random_sentences(60), ["ban", ",", "gel", "did", "n't"]]
    return bilm, make_index(bilm, tmp_path, [*sentences, *sentences[:5]])


@pytest.mark.parametrize("weights", MIXES)
def test_nearest_words_of_a_corpus_are_those_with_the_largest_cosines(indexed, weights):
    bilm, index = indexed
    explorer = make_explorer(bilm, corpora=[CorpusSearch(index)])
    assert describe(explorer)["bilms"][0]["n_corpus_words"] == len(index.tokens)
    text = "ban ban gel"
    for _ in range(2):  # the second time, with the products of the first
        [found] = ask_neighbors(explorer, weights, "corpus", text)
        query = mix(bilm.embed([text.split()])[0][:, 1:2], weights)[0]
        layers = np.stack([index.get_layer(name) for name in ("0", "1", "2")])
        expected = np.unique(cosines(mix(layers, weights), query).round(5))[::-1]
        # A tenth of the sentences is repeated, of which each is shown once. In layer 0,
        # all occurrences of a word are equal.
        seen = list(dict.fromkeys(round(each["cosine"], 2) for each in found))
        assert len(found) == TOP and seen
        for each in found:
            assert np.abs(expected - each["cosine"]).min() < 1e-3
        assert found[0]["cosine"] == pytest.approx(expected[0], abs=1e-3)
        if weights[0] == 0:
            values = [each["cosine"] for each in found]
            assert values == pytest.approx(expected[:TOP].tolist(), abs=1e-3)


def test_the_query_itself_is_not_its_neighbor_in_the_corpus(indexed):
    bilm, index = indexed
    explorer = make_explorer(bilm, corpora=[CorpusSearch(index)])
    words = index.get_sentence(7)
    [found] = ask_neighbors(explorer, [0, 0, 1], "corpus", " ".join(words), word=0)
    shown = {(each["before"], each["word"], each["after"]) for each in found}
    assert len(shown) == len(found) == TOP
    assert ("", words[0], "".join(f" {word}" for word in words[1:])) not in shown


def test_words_of_a_corpus_are_joined_as_they_are_written(indexed):
    bilm, index = indexed
    explorer = make_explorer(bilm, corpora=[CorpusSearch(index)])
    [found] = ask_neighbors(explorer, [1, 0, 0], "corpus", "did", word=0)
    assert found[0]["before"] == "ban, gel " and found[0]["word"] == "did"
    assert found[0]["after"] == "n't"


def test_without_a_corpus_there_is_no_answer():
    assert ask_neighbors(make_explorer(), [0, 0, 1], "corpus") == [None]


# Two sentences


@pytest.mark.parametrize("weights", MIXES)
def test_heat_map_has_the_cosines_of_all_pairs(weights):
    explorer = make_explorer()
    request = HeatMapRequest(text=TEXT, first=0, second=1, weights=weights)
    [found] = answer_heat_map(explorer, request)["answers"]
    layers = make_bilm().embed([each["words"] for each in words_of(explorer, TEXT)])
    rows, columns = (mix(array, weights) for array in layers)
    assert np.shape(found) == (6, 8)
    for row, vector in zip(found, rows):
        assert row == pytest.approx(cosines(columns, vector).tolist(), abs=1e-4)


# The language model


def test_predictions_and_surprisal_are_those_of_the_bilm():
    bilm = make_bilm_with_softmax()
    explorer = make_explorer(bilm)
    assert describe(explorer)["bilms"][0]["has_softmax"]
    request = WordRequest(text=TEXT, sentence=1, word=3)
    [found] = answer_predictions(explorer, request)["answers"]
    words = "He threw a stick and a stone .".split()
    expected = bilm.predict(words, 3, TOP)
    assert [each["word"] for each in found] == [word for word, _ in expected]
    assert {each["word"] for each in found} == set(WORDS)
    shares = [share for _, share in expected]
    assert [each["share"] for each in found] == pytest.approx(shares, abs=1e-4)
    request = SentenceRequest(text=TEXT, sentence=1)
    [bits] = answer_surprisal(explorer, request)["answers"]
    assert np.array(bits) == pytest.approx(bilm.surprisal([words])[0], abs=1e-4)


def test_without_a_softmax_there_is_no_answer():
    explorer = make_explorer()
    assert not describe(explorer)["bilms"][0]["has_softmax"]
    request = WordRequest(text=TEXT, sentence=0, word=0)
    assert answer_predictions(explorer, request) == {"answers": [None]}
    assert answer_surprisal(explorer, request) == {"answers": [None]}


# Two biLMs


def test_each_bilm_gives_its_own_answer():
    first, second = make_bilm(), make_bilm_with_softmax()
    both = make_explorer(first, second)
    request = SentenceRequest(text=TEXT, sentence=0)
    assert [x is None for x in answer_surprisal(both, request)["answers"]] == [
        True,
        False,
    ]
    [alone] = ask_neighbors(make_explorer(second), [1, 1, 1])
    found = ask_neighbors(both, [1, 1, 1])
    assert found[1] == alone and found[0] != alone


def test_a_bilm_with_fewer_layers_uses_those_that_it_has():
    small = make_bilm_with_softmax(n_layers=1)
    both = make_explorer(make_bilm(), small)
    alone = make_explorer(small)
    assert ask_neighbors(both, [0.5, 1, 0.3])[1:] == ask_neighbors(alone, [0.5, 1])
    # Only the missing layer has a weight: the top layer takes its place.
    assert ask_neighbors(both, [0, 0, 1])[1:] == ask_neighbors(alone, [0, 1])


# Numbers that do not fit


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"sentence": 2}, "the number of a sentence is 2; expected one below 2"),
        ({"word": 6}, "'word' is 6; expected a number below 6"),
        ({"weights": [1, 1]}, "'weights' has 2 numbers with the sum 2; expected 3"),
        ({"weights": [0, 0, 0]}, "'weights' has 3 numbers with the sum 0; expected 3"),
        ({"text": ""}, "the number of a sentence is 0; expected one below 0"),
    ],
)
def test_numbers_out_of_range_are_refused(changed, said):
    with pytest.raises(BadRequest, match=said):
        ask_neighbors(make_explorer(), **{"weights": [1, 0, 0], **changed})


def test_numbers_that_are_not_finite_become_null():
    bilm = make_bilm_with_softmax()
    bilm.softmax.bias.data[3] = float("nan")
    explorer = make_explorer(bilm)
    answer = answer_surprisal(explorer, SentenceRequest(text=TEXT, sentence=0))
    assert "NaN" not in json.dumps(answer) and "null" in json.dumps(answer)


# The cache


def test_only_new_sentences_are_computed(monkeypatch):
    explorer = make_explorer()
    bilm = explorer.bilms[0].bilm
    asked = []
    embed = bilm.embed
    monkeypatch.setattr(
        bilm,
        "embed",
        lambda sentences: asked.append(len(sentences)) or embed(sentences),
    )
    ask_neighbors(explorer, [0, 0, 1])
    ask_neighbors(explorer, [1, 0, 0])
    ask_neighbors(explorer, [1, 0, 0], text=TEXT + "\nAnother one.")
    assert [n for n in asked if n] == [2, 1]


def test_cache_is_bounded():
    bilm = make_bilm()
    one = bilm.embed([["a", "b"]])[0].nbytes
    cache = VectorCache(bilm, 3 * one)
    for n in range(10):
        [layers] = cache.embed([("a", str(n))])
        np.testing.assert_allclose(layers, bilm.embed([["a", str(n)]])[0], atol=1e-5)
        assert len(cache) <= 3
    # A text that does not fit is computed all the same.
    sentences = [("a", str(n)) for n in range(7, 20)]
    for words, layers in zip(sentences, cache.embed(sentences)):
        np.testing.assert_allclose(layers, bilm.embed([words])[0], atol=1e-5)
    assert len(cache) == 3
