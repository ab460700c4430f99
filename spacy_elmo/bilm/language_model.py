"""Use a biLM as a language model: probabilities of words in their contexts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array_types import as_index, concatenate, stack, to_numpy
from .bilm_base import BiLMBase
from .lexicon import SPECIAL_WORDS
from .sentence_checks import check_sentences

BEGIN, END, UNKNOWN = SPECIAL_WORDS
# Words whose probabilities are computed at a time.
BATCH_TOKENS = 2048


def get_head(bilm: BiLMBase) -> tuple[Any, list[str]]:
    """Return the softmax and its words. Raise ValueError if the model has none."""
    if bilm.softmax is None or bilm.vocab is None:
        raise ValueError(
            "this biLM has no softmax with a vocabulary, so it gives no probabilities; "
            "expected one as `spacy elmo pretrain` writes it"
        )
    return bilm.softmax, bilm.vocab


def predict_word(
    bilm: BiLMBase, sentence: Sequence[str], position: int, n: int
) -> list[tuple[str, float]]:
    """Predict the word at a position; see BiLMBase.predict."""
    head, vocab = get_head(bilm)
    (words,) = check_sentences([sentence])
    is_number = isinstance(position, int | np.integer)
    if not is_number or not 0 <= position < len(words):
        raise ValueError(
            f"position is {position!r}; expected 0 to {len(words) - 1}, a word of the "
            "sentence"
        )
    if n < 0:
        raise ValueError(f"n is {n}; expected a number of words")
    (top,) = bilm.run_with_boundaries([words], lambda row, layers: layers[:, -1])
    width = bilm.config.lstm.projection_dim
    # Neither direction may have read the word itself: take the forward output at the
    # word before it and the backward output at the word after it.
    sides = stack([top[position, :width], top[position + 2, width:]])
    scores = to_numpy(head.all_log_probs(sides)).sum(0)
    for word in SPECIAL_WORDS:
        scores[vocab.index(word)] = -np.inf
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    best = np.argsort(-shares, kind="stable")[: min(n, len(vocab) - 3)]
    return [(vocab[number], float(shares[number])) for number in best]


def surprisal(
    bilm: BiLMBase, sentences: Sequence[Sequence[str]], boundaries: bool = False
) -> list[np.ndarray]:
    """Compute the surprisal of each word; see BiLMBase.surprisal."""
    head, vocab = get_head(bilm)
    numbers = {word: number for number, word in enumerate(vocab)}
    begin, end = numbers[BEGIN], numbers[END]
    # A word of the text that is spelled like a boundary counts as an unknown word.
    numbers[BEGIN] = numbers[END] = numbers[UNKNOWN]
    width = bilm.config.lstm.projection_dim
    pending = _Pending(head)

    def finish(row: int, layers: Any) -> np.ndarray:
        words, top = sentences[row], layers[:, -1]
        own = [numbers.get(word, numbers[UNKNOWN]) for word in words]
        bits = np.full((len(words) + 2, 2), np.nan, dtype=np.float32)
        pending.add(top[:-1, :width], [*own, end], bits[1:, 0])
        pending.add(top[1:, width:], [begin, *own], bits[:-1, 1])
        return bits if boundaries else bits[1:-1]

    found = bilm.run_with_boundaries(sentences, finish)
    pending.compute()
    return found


class _Pending:
    """Words whose surprisal is still to be computed, many at a time.

    head: The softmax.
    """

    def __init__(self, head: Any) -> None:
        self.head = head
        self.waiting: list[tuple[Any, list[int], np.ndarray]] = []

    def add(self, hidden: Any, words: list[int], bits: np.ndarray) -> None:
        """Add some words.

        hidden: The outputs that predict them, (n, proj).
        words (list[int]): Their numbers in the softmax.
        bits (np.ndarray): Where to write their surprisal, (n,).
        """
        self.waiting.append((hidden, words, bits))
        if sum(len(words) for _, words, _ in self.waiting) >= BATCH_TOKENS:
            self.compute()

    def compute(self) -> None:
        """Compute the surprisal of all words that were added."""
        if not self.waiting:
            return
        hidden = concatenate([rows for rows, _, _ in self.waiting])
        words = [word for _, words, _ in self.waiting for word in words]
        logs = self.head.log_probs(hidden, as_index(words, hidden))
        at = 0
        for _, own, bits in self.waiting:
            bits[:] = to_numpy(logs[at : at + len(own)]) / -np.log(2)
            at += len(own)
        self.waiting = []
