import numpy as np
import pytest
import spacy
import torch

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    Lexicon,
    LSTMConfig,
    WordsConfig,
)
from spacy_elmo.bilm.word_vectors import bilm_from_word_vectors
from spacy_elmo.layers.vocab_vectors import bilm_from_vocab

LSTM = LSTMConfig(dim=7, projection_dim=5)
CHARACTERS = ["<bos>", "<eos>", "<bow>", "<eow>", "<oov>", "<pad>", *"abcdefg눈사과"]
WORDS = ["<bos>", "<eos>", "<oov>", "<pad>", "bad", "cab", "눈"]
FILTERS = [[1, 3], [2, 4]]


def ids(symbols):
    return {symbol: row for row, symbol in enumerate(symbols)}


def make(kind):
    lexicon = Lexicon(characters=ids(CHARACTERS), words=ids(WORDS))
    encoder = {
        "bytes": BytesConfig(char_dim=3, filters=FILTERS),
        "chars": CharsConfig(char_dim=3, word_dim=2, filters=FILTERS),
        "chars-alone": CharsConfig(char_dim=3, filters=FILTERS),
        "chars-lstm": CharsConfig(reader="lstm", char_dim=3, word_dim=2),
        "words": WordsConfig(dim=4),
    }[kind]
    if kind == "words":
        lexicon = Lexicon(words=ids(["<S>", "</S>", "<UNK>", "bad", "cab"]))
    torch.manual_seed(0)
    return BiLM(BiLMConfig(encoder=encoder, lstm=LSTM), lexicon=lexicon)


KINDS = ["bytes", "chars", "chars-alone", "chars-lstm", "words"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_encoder_agrees_with_float64(kind):
    bilm = make(kind)
    sentences = [["bad", "cab", "unheard", "눈"], [], ["bad"], ["a" * 70, "bad", ""]]
    found = bilm.embed(sentences)
    # In float64, `embed` uses the differentiable path.
    expected = make(kind).double().embed(sentences)
    for x, y, sentence in zip(found, expected, sentences):
        assert x.shape == (3, len(sentence), 10)
        np.testing.assert_allclose(x, y, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_encoder_gets_gradients(kind):
    bilm = make(kind)
    bilm(bilm.prepare([["bad", "눈"], ["cab"]])).layers.sum().backward()
    for name, weight in bilm.encoder.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_do_not_depend_on_other_sentences(kind):
    bilm = make(kind)
    sentences = [["bad", "cab"], ["abcdefg" * 4, "눈"], ["cab"]]
    together = bilm.embed(sentences)
    for sentence, expected in zip(sentences, together):
        alone = make(kind).embed([sentence])[0]
        np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_unknown_words_differ_by_their_characters_only():
    for kind, differ in (("bytes", True), ("chars", True), ("words", False)):
        x = make(kind).embed([["abba"], ["deaf"]])
        assert (np.abs(x[0][0] - x[1][0]).max() > 1e-4) == differ, kind


def test_a_missing_lexicon_is_refused():
    with pytest.raises(ValueError, match="lexicon"):
        BiLM(BiLMConfig(encoder=WordsConfig(dim=4), lstm=LSTM))


@pytest.fixture
def vocab():
    nlp = spacy.blank("xx")
    rng = np.random.default_rng(0)
    for word in ("눈", "사과", "손"):
        nlp.vocab.set_vector(word, rng.normal(size=4).astype("float32"))
    return nlp.vocab


@pytest.mark.parametrize("trainable", [True, False])
def test_word_table_starts_from_a_vocab(vocab, trainable):
    bilm = bilm_from_vocab(vocab, lstm=LSTM, trainable=trainable)
    table, rows = bilm.encoder.table, bilm.lexicon.words
    for word in ("눈", "사과", "손"):
        np.testing.assert_array_equal(table[rows[word]].detach(), vocab[word].vector)
    before = table.detach().clone()
    optimizer = torch.optim.SGD([p for p in bilm.parameters() if p.requires_grad], 0.1)
    bilm(bilm.prepare([["눈", "사과", "처음"]])).layers.sum().backward()
    optimizer.step()
    assert torch.equal(table, before) != trainable


def test_vectors_of_the_lstm_size_are_not_projected(vocab):
    bilm = bilm_from_vocab(vocab, lstm=LSTMConfig(dim=3, projection_dim=4))
    assert bilm.encoder.projection is None
    layer0 = bilm.embed([["손", "없음"]])[0][0]  # [x_k ; x_k]
    np.testing.assert_array_equal(layer0[0], np.tile(vocab["손"].vector, 2))
    mean = np.mean([vocab[w].vector for w in ("눈", "사과", "손")], axis=0)
    np.testing.assert_allclose(layer0[1], np.tile(mean, 2), atol=1e-6)


def test_a_fixed_table_stays_fixed_after_saving(vocab, tmp_path):
    from spacy_elmo import load_bilm

    bilm_from_vocab(vocab, lstm=LSTM).save(tmp_path)
    assert not load_bilm(tmp_path).encoder.table.requires_grad


def test_vocab_without_vectors_is_refused():
    with pytest.raises(ValueError, match="no vectors"):
        bilm_from_vocab(spacy.blank("xx").vocab)


def test_vectors_without_a_list_of_words_are_refused():
    from spacy.vectors import Vectors

    vocab = spacy.blank("xx").vocab
    data = np.ones((10, 4), dtype="float32")
    vocab.vectors = Vectors(data=data, mode="floret", hash_count=1, strings=None)
    with pytest.raises(ValueError, match="floret"):
        bilm_from_vocab(vocab)


def test_words_and_vectors_must_match():
    with pytest.raises(ValueError, match="distinct"):
        bilm_from_word_vectors(["a", "a"], np.ones((2, 3), dtype="float32"))
    with pytest.raises(ValueError, match="vectors"):
        bilm_from_word_vectors(["a"], np.ones((2, 3), dtype="float32"))
    with pytest.raises(ValueError, match="<S>"):
        bilm_from_word_vectors(["<S>"], np.ones((1, 3), dtype="float32"))
