"""Test benchmarks/kneser_ney.py, the trigram model that biLMs are compared with."""

import importlib.util
import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from helpers.pretraining import write_text

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, SoftmaxConfig
from spacy_elmo.pretrain.corpus import build_corpus
from spacy_elmo.pretrain.perplexity import evaluate
from spacy_elmo.pretrain.pretrain_config import VocabConfig
from spacy_elmo.pretrain.vocab import choose_words, softmax_numbers
from spacy_elmo.pretrain.windows import WindowEncoder
from spacy_elmo.text.tokenizers import Tokenization

PATH = Path(__file__).parents[2] / "benchmarks" / "kneser_ney.py"
spec = importlib.util.spec_from_file_location("kneser_ney", PATH)
kneser_ney = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kneser_ney)

N_WORDS = 12


class Naive:
    """The same model as in kneser_ney.py, but written as simply as possible."""

    def __init__(self, sentences, n_outcomes):
        raw = [Counter(), Counter()]  # counts of pairs and of trigrams
        for words in sentences:
            padded = [0, *words, 0]
            raw[0].update(zip(padded, padded[1:]))
            raw[1].update(zip(padded, padded[1:], padded[2:]))
        pairs = Counter(ngram[1:] for ngram in raw[1])
        pairs.update({pair: n for pair, n in raw[0].items() if pair[0] == 0})
        words = Counter(pair[1:] for pair in pairs)
        self.orders = [self.order(counts) for counts in (words, pairs, raw[1])]
        self.n_outcomes = n_outcomes

    def order(self, counts):
        follow = defaultdict(dict)
        for ngram, n in counts.items():
            follow[ngram[:-1]][ngram[-1]] = n
        return follow, kneser_ney.discounts(np.array(list(counts.values())))

    def probability(self, context, word):
        follow, taken = self.orders[len(context)]
        if context:
            shorter = self.probability(context[1:], word)
        else:
            shorter = 1 / self.n_outcomes
        counts = follow.get(context)
        if counts is None:
            return shorter
        left = sum(taken[min(n, 3)] for n in counts.values())
        own = counts.get(word, 0)
        own -= taken[min(own, 3)]
        return (own + left * shorter) / sum(counts.values())


def random_sentences(seed, n):
    """Make n random sentences of word numbers from 1 to N_WORDS - 2. The last two words
    of the vocabulary never occur."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        steps = rng.geometric(0.4, int(rng.integers(1, 9)))
        found.append((1 + np.cumsum(steps) % (N_WORDS - 2)).tolist())
    return found


def as_stream(sentences):
    return np.array([word for words in sentences for word in (0, *words)])


@pytest.mark.parametrize("n", [2, 40, 400])
def test_probabilities_are_those_of_the_formulas_and_sum_to_one(n):
    sentences = random_sentences(0, n)
    model = kneser_ney.KneserNey(as_stream(sentences), N_WORDS + 1)
    naive = Naive(sentences, N_WORDS + 1)
    words = np.arange(N_WORDS + 1)
    contexts = [(0, 0), *((u, v) for u in range(N_WORDS + 1) for v in words[1:])]
    for u, v in contexts:
        both = np.tile([[u], [v]], len(words))
        found = model.probabilities(both, words)
        context = (u, v) if v else (v,)
        expected = [naive.probability(context, word) for word in words]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert found.sum() == pytest.approx(1)


def test_discounts_are_estimated_unless_there_is_too_little_text():
    counts = np.repeat([1, 2, 3, 4, 5], [40, 10, 5, 3, 2])
    y = 40 / 60
    expected = [0, 1 - 2 * y / 4, 2 - 3 * y / 2, 3 - 4 * y * 3 / 5]
    np.testing.assert_allclose(kneser_ney.discounts(counts), expected)
    too_few = kneser_ney.discounts(np.array([1, 2, 2, 2, 2]))
    assert too_few.tolist() == [0, *kneser_ney.FALLBACK]


def test_a_sentence_of_n_words_is_n_plus_1_predictions():
    sentences = random_sentences(1, 50)
    model = kneser_ney.KneserNey(as_stream(sentences), N_WORDS + 1)
    held_out = random_sentences(2, 5)
    naive = Naive(sentences, N_WORDS + 1)
    expected = []
    for words in held_out:
        expected.append(math.log(naive.probability((0,), words[0])))
        padded = [0, *words, 0]
        for u, v, w in zip(padded, padded[1:], padded[2:]):
            expected.append(math.log(naive.probability((u, v), w)))
    found = model.log_probs(as_stream(held_out))
    np.testing.assert_allclose(found, expected)
    assert len(found) == sum(len(words) + 1 for words in held_out)


@pytest.fixture
def corpus(tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=60)
    folder = tmp_path / "corpus"
    return build_corpus(
        [str(text)], folder, tokenization=Tokenization("en"), dev_share=0.2
    )[0]


def test_tokens_and_unknown_words_are_counted_as_for_a_bilm(corpus, capsys, tmp_path):
    vocab = choose_words(corpus, VocabConfig(max_words=60, min_count=2))
    assert kneser_ney.main([str(corpus.folder), "--max-words", "60"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["vocab"] == len(vocab) == 60
    assert found["mean"] == (found["forward"] + found["backward"]) / 2
    assert 1 < found["forward"] < 60 and 1 < found["backward"] < 60

    config = BiLMConfig(
        BytesConfig(char_dim=2, filters=[[1, 3]]),
        LSTMConfig(4, 3),
        SoftmaxConfig(n_words=len(vocab)),
    )
    bilm = BiLM(config, vocab=vocab)
    outputs, boundaries, unknown = softmax_numbers(corpus.words, vocab)
    window_encoder = WindowEncoder(
        bilm, corpus.words, outputs, boundaries, forget=False
    )
    own = evaluate(bilm, corpus.dev, window_encoder, unknown).as_dict()
    assert found["n_tokens"] == own["n_tokens"] > 0
    assert found["unknown_rate"] == own["unknown_rate"] > 0

    path = tmp_path / "vocab.txt"
    path.write_text("".join(word + "\n" for word in vocab), encoding="utf8")
    assert kneser_ney.main([str(corpus.folder), "--vocab", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == found

    log = tmp_path / "log.jsonl"
    facts = {"type": "evaluation", "seconds": 90, "words": 2_000_000}
    means = (found["mean"] + 1, found["mean"] - 1)
    records = [{"type": "step"}, *({**facts, "mean": mean} for mean in means)]
    log.write_text("\n".join(map(json.dumps, records)), "utf8")
    kneser_ney.main([str(corpus.folder), "--max-words", "60", "--log", str(log)])
    first, second = json.loads(capsys.readouterr().out)["curve"]
    assert first == f"1.5 minutes  2.00M words  {means[0]:.1f}"
    assert second.endswith(f"{means[1]:.1f}  better than the trigram")


def test_both_directions_agree_on_palindromes(tmp_path):
    lines = ["a b c b a", "b b", "a", "c a c", "a b c b a", "b a b"]
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(lines * 20), encoding="utf8")
    held_out = tmp_path / "dev.txt"
    held_out.write_text("\n\n".join(["a b a", "c", "c b b c"]), encoding="utf8")
    corpus, _ = build_corpus(
        [str(text)],
        tmp_path / "corpus",
        tokenization=Tokenization(tokenized=True),
        dev_text=[str(held_out)],
    )
    vocab = choose_words(corpus, VocabConfig())
    result = kneser_ney.measure(corpus, vocab)
    assert result.forward == pytest.approx(result.backward)


def test_bad_input_gives_one_sentence(tmp_path, capsys):
    assert kneser_ney.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")
