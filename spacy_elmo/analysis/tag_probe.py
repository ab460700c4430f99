"""How well each layer alone predicts tags (Table 6 of the paper)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from spacy.vocab import Vocab

from ..bilm import BiLM
from .layer_vectors import (
    LayerWriter,
    Tell,
    embed_stream,
    layer_names,
    read_layer,
    silent,
)
from .linear_classifier import fit
from .static_vectors import static_vectors
from .tagged_sentences import TaggedSentence


class Tokens:
    """All tokens of a data set: their words, tags and layers.

    folder (Path): Empty; the layers go there.
    """

    def __init__(
        self, bilm: BiLM, sentences: Iterable[TaggedSentence], folder: Path, tell: Tell
    ) -> None:
        self.folder = folder
        self.width = bilm.config.width
        self.names = layer_names(bilm)[:-1]
        self.words: list[str] = []
        self.tags: dict[str, list[str]] = defaultdict(list)
        stream = embed_stream(bilm, sentences, lambda sentence: sentence.words, tell)
        with LayerWriter(folder, self.names) as writer:
            for sentence, layers in stream:
                writer.add(layers)
                self.words.extend(sentence.words)
                for attr, tags in sentence.tags.items():
                    self.tags[attr].extend(tags)

    def tagged(self, attr: str) -> np.ndarray:
        """RETURNS (np.ndarray): The rows of words that have a tag."""
        return np.flatnonzero([tag != "" for tag in self.tags[attr]])


# Of all tokens, (n_tokens, width), float16
Vectors = Callable[[Tokens], np.ndarray]


def _layer(name: str, tokens: Tokens) -> np.ndarray:
    return read_layer(tokens.folder, name, tokens.width)


def _mix(tokens: Tokens) -> np.ndarray:
    total = np.zeros((len(tokens.words), tokens.width), dtype=np.float32)
    for name in tokens.names:
        total += _layer(name, tokens)
    return (total / len(tokens.names)).astype(np.float16)


def _static(vocab: Vocab, tokens: Tokens) -> np.ndarray:
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    table = static_vectors(vocab, list(numbers)).astype(np.float16)
    return table[[numbers[word] for word in tokens.words]]


def probe_tags(
    bilm: BiLM,
    train: Iterable[TaggedSentence],
    dev: Iterable[TaggedSentence],
    *,
    attrs: Sequence[str] = ("pos",),
    static: Vocab | None = None,
    seed: int = 0,
    tell: Tell = silent,
) -> list[dict[str, Any]]:
    """RETURNS (list[dict[str, Any]]): For each attribute its name ("task"), how many
    words were used, and "rows" with the accuracy of each kind of vector."""
    with TemporaryDirectory() as folder:
        parts = []
        for name, sentences in (("train", train), ("dev", dev)):
            place = Path(folder) / name
            place.mkdir()
            parts.append(Tokens(bilm, sentences, place, tell))
        return [_probe(attr, parts[0], parts[1], static, seed) for attr in attrs]


def _probe(
    attr: str, train: Tokens, dev: Tokens, static: Vocab | None, seed: int
) -> dict[str, Any]:
    train_rows, dev_rows = train.tagged(attr), dev.tagged(attr)
    for name, rows in (("TRAIN", train_rows), ("DEV", dev_rows)):
        if not len(rows):
            raise ValueError(f"found no words with a {attr} in {name}; expected some")
    tags = [train.tags[attr][row] for row in train_rows]
    gold = [dev.tags[attr][row] for row in dev_rows]
    numbers = {tag: number for number, tag in enumerate(sorted(set(tags)))}
    if len(numbers) < 2:
        raise ValueError(
            f"found '{tags[0]}' as the {attr} of all words in TRAIN; expected two "
            "different ones at least"
        )
    labels = np.array([numbers[tag] for tag in tags])
    expected = np.array([numbers.get(tag, -1) for tag in gold])

    def accuracy(vectors: Vectors) -> float:
        model = fit(vectors(train)[train_rows], labels, len(numbers), seed=seed)
        return float((model.predict(vectors(dev)[dev_rows]) == expected).mean())

    guesses = most_frequent(
        [train.words[row] for row in train_rows],
        tags,
        [dev.words[row] for row in dev_rows],
    )
    hits = [guess == tag for guess, tag in zip(guesses, gold)]
    found = [_row("most frequent tag", None, float(np.mean(hits)))]
    if static is not None:
        found.append(_row("static vectors", None, accuracy(partial(_static, static))))
    for name in train.names:
        found.append(_row(f"layer {name}", int(name), accuracy(partial(_layer, name))))
    found.append(_row("mix", "mix", accuracy(_mix)))
    return {"task": attr, "train": len(tags), "dev": len(gold), "rows": found}


def _row(name: str, layer: Any, accuracy: float) -> dict[str, Any]:
    return {"name": name, "layer": layer, "accuracy": accuracy}


def most_frequent(
    words: Sequence[str], tags: Sequence[str], unknown: Sequence[str]
) -> list[str]:
    """RETURNS (list[str]): For each of some other words its most frequent tag, or for
    a new one the most frequent of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(words, tags):
        counts[word][tag] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    majority = Counter(tags).most_common(1)[0][0]
    return [best.get(word, majority) for word in unknown]
