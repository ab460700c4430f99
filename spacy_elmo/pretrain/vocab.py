"""Choose the vocabulary of the softmax, and find the words of a corpus in it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..bilm.formats.small_files import read_vocab
from ..bilm.lexicon import SPECIAL_WORDS
from .corpus import Corpus
from .pretrain_config import PretrainConfig, VocabConfig


def choose_words(corpus: Corpus, config: VocabConfig) -> list[str]:
    """Choose the special words and the most frequent words of a corpus, as many as the
    config allows."""
    special = list(SPECIAL_WORDS)
    words = [
        word
        for word, count in zip(corpus.words, corpus.counts)
        if count >= config.min_count and word not in special
    ]
    return special + words[: max(0, config.max_words - len(special))]


def load_given_words(config: PretrainConfig) -> list[str] | None:
    """Load the words of paths.output_vocab, if it is set."""
    path = config.paths.output_vocab
    return None if path is None else read_vocab(Path(path))


def softmax_numbers(
    words: Sequence[str], vocab: Sequence[str]
) -> tuple[np.ndarray, tuple[int, int], int]:
    """Find the number in the softmax of each word of a corpus.

    words (Sequence[str]): The words of the corpus. Word number n is words[n - 1].
    vocab (Sequence[str]): The words of the softmax, in the order of their numbers.
    RETURNS (tuple[np.ndarray, tuple[int, int], int]): The number in the softmax of each
        word number, (n_words + 1,), in which index 0 is not used; the numbers in the
        softmax of the end and of the beginning of a sentence; and the number in the
        softmax that all unknown words share.
    """
    numbers = {word: number for number, word in enumerate(vocab)}
    unknown = numbers["<UNK>"]
    boundaries = numbers.pop("</S>"), numbers.pop("<S>")
    outputs = np.array([unknown, *(numbers.get(word, unknown) for word in words)])
    return outputs, boundaries, unknown
