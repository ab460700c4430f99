"""The biLM as a language model: predicted words and surprisal."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
    SoftmaxConfig,
    language_model,
)

VOCAB = ["<S>", "</S>", "<UNK>", *(f"w{n}" for n in range(27))]
SENTENCE = ["w3", "w9", "눈", "w26", "w0"]


def make(kind="full", vocab=VOCAB):
    torch.manual_seed(0)
    bilm = BiLM(
        BiLMConfig(
            BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]]),
            LSTMConfig(8, 5),
            SoftmaxConfig(len(VOCAB), kind, n_samples=10),
        ),
        vocab=vocab,
    )
    with torch.no_grad():  # so that probabilities are far from uniform
        for weight in bilm.parameters():
            weight.mul_(2.0)
    return bilm.eval()


def word_logs(bilm, hidden):
    """Compute the log probability of each word, one word at a time."""
    hidden = hidden.expand(len(VOCAB), -1)
    return bilm.softmax.log_probs(hidden, torch.arange(len(VOCAB)))


@torch.no_grad()
def side_logs(bilm, sentence):
    """Compute the log probability of every word at each position, first from the words
    before it and then from the words after it, (2, n_tokens, n_words). The biLM reads
    only the words of that side."""
    width = bilm.config.lstm.projection_dim
    before = [
        bilm(bilm.prepare([sentence[:n]])).layers[-1, 0, n, :width]
        for n in range(len(sentence))
    ]
    after = [
        bilm(bilm.prepare([sentence[n + 1 :]])).layers[-1, 0, 1, width:]
        for n in range(len(sentence))
    ]
    rows = [[word_logs(bilm, hidden) for hidden in side] for side in (before, after)]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.fixture(params=["full", "sampled", "adaptive"])
def bilm(request):
    return make(request.param)


def test_probabilities_sum_to_one(bilm):
    total = side_logs(bilm, SENTENCE).exp().sum(2)
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("position", range(len(SENTENCE)))
def test_predicted_words(bilm, position):
    scores = side_logs(bilm, SENTENCE)[:, position].sum(0)[3:]  # no special words
    shares = scores.softmax(0)
    found = bilm.predict(SENTENCE, position, 5)
    best = shares.argsort(descending=True)[:5]
    assert [word for word, _ in found] == [VOCAB[3 + n] for n in best]
    np.testing.assert_allclose([p for _, p in found], shares[best], rtol=1e-4)


def test_n_may_be_larger_than_the_vocabulary(bilm):
    found = dict(bilm.predict(SENTENCE, 1, 1000))
    assert sorted(found) == sorted(VOCAB[3:])
    assert sum(found.values()) == pytest.approx(1)


def test_prediction_does_not_depend_on_the_word_itself(bilm):
    for word in ("w1", "", "눈"):
        other = [*SENTENCE[:2], word, *SENTENCE[3:]]
        assert bilm.predict(other, 2) == bilm.predict(SENTENCE, 2)
        assert bilm.predict(other, 3) != bilm.predict(SENTENCE, 3) or word == "눈"


def test_the_sentence_may_be_a_generator(bilm):
    assert bilm.predict(iter(SENTENCE), 2) == bilm.predict(SENTENCE, 2)


@pytest.mark.parametrize(
    "sentence, position",
    [(SENTENCE, 5), (SENTENCE, -1), ([], 0), (SENTENCE, 1.0), (SENTENCE, None)],
)
def test_position_outside_of_the_sentence_is_refused(sentence, position):
    with pytest.raises(ValueError, match=f"position is {position}; expected") as caught:
        make().predict(sentence, position)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_tokens", [1, 7, 10**6])
def test_surprisal(bilm, monkeypatch, n_tokens):
    monkeypatch.setattr(language_model, "BATCH_TOKENS", n_tokens)
    sentences = [SENTENCE, [], ["w5"], SENTENCE[::-1] * 2, ["unheard-of", "w5"]]
    found = bilm.surprisal(sentences)
    assert len(found) == len(sentences)
    for sentence, bits in zip(sentences, found):
        assert bits.shape == (len(sentence), 2) and bits.dtype == np.float32
        if sentence:
            own = [VOCAB.index(w) if w in VOCAB else 2 for w in sentence]
            logs = side_logs(bilm, sentence)[:, range(len(own)), own]
            np.testing.assert_allclose(bits, -logs.T / np.log(2), rtol=1e-4)


def test_autocast_has_no_influence(bilm):
    (expected,), predicted = bilm.surprisal([SENTENCE]), bilm.predict(SENTENCE, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(bilm.surprisal([SENTENCE])[0], expected)
        assert bilm.predict(SENTENCE, 2) == predicted


def test_boundaries_in_a_text_are_unknown_words():
    bilm = make()
    for word in ("<S>", "</S>"):
        one, two = bilm.surprisal([["w3", word, "w4"], ["w3", "<UNK>", "w4"]])
        assert np.allclose(one[1], two[1], atol=1e-5)


def test_surprisal_of_docs(tmp_path):
    make().save(tmp_path / "bilm")
    nlp = spacy.blank("en")
    bilm = str(tmp_path / "bilm")
    nlp.add_pipe("elmo", config={"bilm": bilm, "surprisal": True})
    (expected,) = make().surprisal([SENTENCE])
    docs = [nlp(" ".join(SENTENCE))]
    nlp.to_disk(tmp_path / "nlp")
    docs.append(spacy.load(tmp_path / "nlp")(" ".join(SENTENCE)))
    docs.append(Doc(nlp.vocab).from_bytes(docs[0].to_bytes()))
    for doc in docs:
        np.testing.assert_allclose(doc._.elmo_surprisal, expected, atol=1e-4)
        np.testing.assert_array_equal(doc[3]._.elmo_surprisal, doc._.elmo_surprisal[3])


def test_a_negative_number_of_words_is_refused():
    with pytest.raises(ValueError, match="n is -1"):
        make().predict(SENTENCE, 0, n=-1)


@pytest.mark.parametrize("part", ["softmax", "vocab"])
def test_a_missing_softmax_is_named_in_one_sentence(part):
    bilm = make()
    setattr(bilm, part, None)
    for call in (lambda: bilm.predict(["a"], 0), lambda: bilm.surprisal([["a"]])):
        with pytest.raises(ValueError, match="has no softmax with a vocabulary") as c:
            call()
        assert "\n" not in str(c.value)
