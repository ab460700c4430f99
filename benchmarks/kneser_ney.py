"""A baseline for a pretrained biLM: an interpolated, modified Kneser-Ney trigram model,
forward and backward, with the same vocabulary, tokens, sentences and held-out text. See
README.md in this folder."""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spacy_elmo.bilm.formats.small_files import read_vocab
from spacy_elmo.pretrain.corpus import Corpus
from spacy_elmo.pretrain.perplexity import Perplexity
from spacy_elmo.pretrain.pretrain_config import VocabConfig
from spacy_elmo.pretrain.vocab import choose_words, softmax_numbers
from spacy_elmo.pretrain.windows import reverse_sentences

BITS = 21  # bits of a word in a packed n-gram: three words fit into an int64
WORD = 2**BITS - 1  # the highest number of a word, and the mask of the last word
FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small to estimate them


class Table(NamedTuple):
    """The n-grams of one length. The context of an n-gram is all of it but the last
    word. A packed n-gram is one integer, with the last word in its lowest bits.

    ngrams (np.ndarray): The distinct n-grams, packed and sorted, (n,).
    shares (np.ndarray): The discounted count of each n-gram, divided by the count of
        its context, (n,).
    contexts (np.ndarray): The distinct contexts, packed and sorted, (m,).
    left (np.ndarray): The probability left to shorter n-grams in each context, (m,).
    """

    ngrams: np.ndarray
    shares: np.ndarray
    contexts: np.ndarray
    left: np.ndarray

    @classmethod
    def of_counts(cls, ngrams: np.ndarray, counts: np.ndarray) -> "Table":
        """Make a table.

        ngrams (np.ndarray): Distinct n-grams, packed and sorted, (n,).
        counts (np.ndarray): Their counts, (n,).
        """
        taken = discounts(counts)[np.minimum(counts, 3)]
        contexts, starts = runs(ngrams >> BITS)
        totals = np.add.reduceat(counts, starts)
        left = np.add.reduceat(taken, starts) / totals
        sizes = np.diff(np.append(starts, len(ngrams)))
        shares = (counts - taken) / np.repeat(totals, sizes)
        return cls(ngrams, shares, contexts, left)

    def mix(self, ngrams: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Compute the probability of the last word of each n-gram.

        ngrams (np.ndarray): Packed n-grams, (k,).
        shorter (np.ndarray): The probabilities of the same words after a context that
            is one word shorter, (k,).
        RETURNS (np.ndarray): The probabilities, (k,).
        """
        left = find(self.contexts, self.left, ngrams >> BITS, 1.0)
        return find(self.ngrams, self.shares, ngrams, 0.0) + left * shorter


class KneserNey:
    """A trigram model.

    stream (np.ndarray): Numbers of words, counted from 1, with 0 before each sentence,
        (n_tokens,). The model also predicts 0 at the end of a sentence.
    n_outcomes (int): How many different words the model can predict, 0 included.

    The count of a pair or a single word is the number of different words seen before
    it. No word can stand before a pair that begins a sentence, so the count of such a
    pair is how often it occurs.
    """

    def __init__(self, stream: np.ndarray, n_outcomes: int) -> None:
        if stream.max() > WORD:
            raise ValueError(f"found word {stream.max():,}; expected {WORD:,} at most")
        trigrams, counts = count(_trigrams(stream))
        # The count of a pair is the number of distinct trigrams that end with it.
        pairs, pair_counts = count(trigrams & (WORD << BITS | WORD))
        words = np.append(stream, 0).astype(np.int64)
        first, first_counts = count(words[1:][words[:-1] == 0])  # context 0
        pairs = np.concatenate([first, pairs])
        pair_counts = np.concatenate([first_counts, pair_counts])
        self.trigrams = Table.of_counts(trigrams, counts)
        self.pairs = Table.of_counts(pairs, pair_counts)
        single, single_counts = count(pairs & WORD)
        self.words = Table.of_counts(single, single_counts)
        self.n_outcomes = n_outcomes

    def probabilities(self, context: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Compute the probability of each word after the two words before it.

        context (np.ndarray): The two words before each word, (2, n). If the second is
            0, a sentence begins and the first is ignored.
        words (np.ndarray): The words, (n,).
        RETURNS (np.ndarray): The probabilities, (n,).
        """
        words, (before, last) = words.astype(np.int64), context.astype(np.int64)
        p = self.words.mix(words, np.full(len(words), 1 / self.n_outcomes))
        p = self.pairs.mix(last << BITS | words, p)
        trigrams = before << 2 * BITS | last << BITS | words
        return np.where(last == 0, p, self.trigrams.mix(trigrams, p))

    def log_probs(self, stream: np.ndarray) -> np.ndarray:
        """Compute the log probabilities of all words and ends of sentences in a stream,
        (len(stream),)."""
        padded = np.concatenate([[0], stream, [0]])
        context = np.stack([padded[:-2], padded[1:-1]])
        return np.log(self.probabilities(context, padded[2:]))


def _trigrams(stream: np.ndarray) -> np.ndarray:
    """Return all packed trigrams of a stream, also those with a boundary at either end,
    but none that spans two sentences."""
    words = np.append(stream, 0).astype(np.int64)
    packed = words[:-2] << BITS
    packed |= words[1:-1]
    packed <<= BITS
    packed |= words[2:]
    return packed[words[1:-1] != 0]


def count(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values, sorted, and their counts. Sorts values in place."""
    values.sort()
    distinct, starts = runs(values)
    return distinct, np.diff(np.append(starts, len(values)))


def runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a sorted array, and the index where each begins."""
    begins = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return values[starts], starts


def find(
    keys: np.ndarray, values: np.ndarray, wanted: np.ndarray, default: float
) -> np.ndarray:
    """Look up wanted keys in a sorted table.

    keys (np.ndarray): Distinct keys, sorted, (n,).
    values (np.ndarray): Their values, (n,).
    wanted (np.ndarray): The keys to look up, (k,).
    default (float): The value of a key that is not in the table.
    RETURNS (np.ndarray): The values of the wanted keys, (k,).
    """
    places = np.searchsorted(keys, wanted)
    places[places == len(keys)] = 0
    return np.where(keys[places] == wanted, values[places], default)


def discounts(counts: np.ndarray) -> np.ndarray:
    """Estimate the discounts of counts of 1, 2, and 3 or more (Chen and Goodman 1998)
    from the numbers of n-grams with counts of 1, 2, 3 and 4.

    RETURNS (np.ndarray): (4,); the discount of a count of 0 is 0.
    """
    n1, n2, n3, n4 = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].tolist()
    found = FALLBACK
    if n1 and n2 and n3:
        y = n1 / (n1 + 2 * n2)
        found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    if not all(0 < discount <= number for number, discount in enumerate(found, 1)):
        found = FALLBACK
    return np.array([0.0, *found])


def measure(corpus: Corpus, vocab: Sequence[str]) -> Perplexity:
    """Compute the perplexities of both directions on the development text."""
    outputs, boundaries, unknown = softmax_numbers(corpus.words, vocab)
    # A word of the text that looks like a boundary (`<S>`) counts as unknown.
    outputs[np.isin(outputs, boundaries)] = unknown
    numbers = outputs + 1
    numbers[0] = 0
    train, dev = np.asarray(corpus.train.tokens), np.asarray(corpus.dev.tokens)
    # Each direction predicts only one of the two boundaries, hence len(vocab) - 1.
    forward, backward = (
        perplexity(numbers[turn(train)], numbers[turn(dev)], len(vocab) - 1)
        for turn in (np.asarray, reverse_sentences)
    )
    n_unknown = int((outputs[dev[dev != 0]] == unknown).sum())
    return Perplexity(forward, backward, corpus.dev.n_words, n_unknown)


def perplexity(train: np.ndarray, dev: np.ndarray, n_outcomes: int) -> float:
    """Make a trigram model from the stream `train` and compute its perplexity on the
    stream `dev`."""
    return math.exp(-KneserNey(train, n_outcomes).log_probs(dev).mean())


def format_curve(path: Path, floor: float) -> list[str]:
    """Format one line per evaluation in the log of a pretraining.

    path (Path): The log, log.jsonl.
    floor (float): The perplexity of the trigram model.
    """
    lines = []
    for record in map(json.loads, path.read_text("utf8").splitlines()):
        if record["type"] == "evaluation":
            minutes, words = record["seconds"] / 60, record["words"] / 1e6
            better = "  better than the trigram" if record["mean"] < floor else ""
            line = f"{minutes:.1f} minutes  {words:.2f}M words  {record['mean']:.1f}"
            lines.append(line + better)
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the perplexities as JSON and return the exit code: 1 if the input is bad,
    otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("corpus", type=Path, help="the folder `corpus` of a pretraining")
    add("--max-words", type=int, default=10000, help="as vocab.max_words of a config")
    add("--min-count", type=int, default=2, help="as vocab.min_count")
    add("--vocab", type=Path, help="instead, the vocab.txt of a model")
    add("--log", type=Path, help="log.jsonl of a pretraining, to print its curve too")
    args = parser.parse_args(arguments)
    try:
        corpus = Corpus(args.corpus)
        settings = VocabConfig(max_words=args.max_words, min_count=args.min_count)
        vocab = choose_words(corpus, settings)
        if args.vocab is not None:
            vocab = read_vocab(args.vocab, args.vocab.read_bytes().count(b"\n"))
        if not len(corpus.dev.tokens):
            raise ValueError(f"{args.corpus}: found no development text")
        result: dict[str, Any] = measure(corpus, vocab).as_dict()
        result["vocab"] = len(vocab)
        if args.log is not None:
            result["curve"] = format_curve(args.log, result["mean"])
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
