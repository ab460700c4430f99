"""Write the surprisal of each word of a text as a table."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..bilm import BiLMBase
from ..bilm.language_model import BEGIN, END
from ..files import write_atomically
from .corpus import Corpus

COLUMNS = ("sentence", "position", "word", "forward", "backward")
N_SENTENCES = 512  # whose surprisal is computed at a time


def write_surprisal(bilm: BiLMBase, corpus: Corpus, path: Path) -> None:
    """Write a table with a line for each word of a text and for the beginning and the
    end of each sentence, with tabs between the columns.

    The columns are the numbers of the sentence (from 1) and of the word in it (from 1;
    0 is its beginning), the word, and its surprisal in bits given the words before and
    given the words after. A beginning has only the latter and an end only the former,
    so that the mean of a column is log2 of the perplexity of that direction.

    bilm (BiLMBase): The biLM, with a softmax and its vocabulary.
    corpus (Corpus): The text.
    path (Path): The file to write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(COLUMNS)
            for number, words, bits in _measure(bilm, corpus):
                for position, (word, row) in enumerate(zip([BEGIN, *words, END], bits)):
                    table.writerow([number, position, word, *map(_show, row)])

    write_atomically(path, write)


def _measure(
    bilm: BiLMBase, corpus: Corpus
) -> Iterator[tuple[int, list[str], np.ndarray]]:
    """Compute the surprisal of all sentences.

    YIELDS (tuple[int, list[str], np.ndarray]): The number of a sentence, its words, and
        their surprisal, (n_words + 2, 2).
    """
    tokens = corpus.train.tokens
    starts = np.flatnonzero(np.asarray(tokens) == 0).tolist()
    ends = [*starts[1:], len(tokens)]
    for first in range(0, len(starts), N_SENTENCES):
        batch = slice(first, first + N_SENTENCES)
        sentences = [
            [corpus.words[number - 1] for number in tokens[start + 1 : end]]
            for start, end in zip(starts[batch], ends[batch])
        ]
        found = bilm.surprisal(sentences, boundaries=True)
        for n, (words, bits) in enumerate(zip(sentences, found)):
            yield first + n + 1, words, bits


def _show(bits: float) -> str:
    return "" if np.isnan(bits) else f"{bits:.4f}"
