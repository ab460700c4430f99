"""Measure how well each layer alone predicts tags (Table 6 of the paper)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from spacy.vocab import Vocab

from ..bilm import BiLMBase
from .layer_files import LayerWriter, read_layer
from .layer_vectors import Progress, embed_stream, layer_names, no_progress
from .linear_classifier import fit
from .static_vectors import look_up
from .tagged_sentences import TaggedSentence


class EmbeddedTokens:
    """All tokens of a data set: their words, tags and layers.

    folder (Path): An empty folder, in which the layers are stored.
    """

    def __init__(
        self,
        bilm: BiLMBase,
        sentences: Iterable[TaggedSentence],
        folder: Path,
        progress: Progress,
    ) -> None:
        self.folder = folder
        self.width = bilm.config.width
        self.layer_names = layer_names(bilm)[:-1]  # the mix is computed later
        self.words: list[str] = []
        self.tags: dict[str, list[str]] = defaultdict(list)
        stream = embed_stream(bilm, sentences, lambda s: s.words, progress)
        with LayerWriter(folder, self.layer_names) as writer:
            for sentence, layers in stream:
                writer.add(layers)
                self.words.extend(sentence.words)
                for attr, tags in sentence.tags.items():
                    self.tags[attr].extend(tags)

    def rows_with_tag(self, attr: str) -> np.ndarray:
        """Return the positions of all tokens that have this kind of tag, (n_rows,)."""
        return np.flatnonzero([tag != "" for tag in self.tags[attr]])


# Functions that return a vector for each token: (n_tokens, width), float16
GetVectors = Callable[[EmbeddedTokens], np.ndarray]


def get_layer(name: str, tokens: EmbeddedTokens) -> np.ndarray:
    return read_layer(tokens.folder, name, tokens.width)


def get_mix(tokens: EmbeddedTokens) -> np.ndarray:
    """Return the mean of all layers, (n_tokens, width)."""
    total = np.zeros((len(tokens.words), tokens.width), dtype=np.float32)
    for name in tokens.layer_names:
        total += get_layer(name, tokens)
    return (total / len(tokens.layer_names)).astype(np.float16)


def get_static_vectors(vocab: Vocab, tokens: EmbeddedTokens) -> np.ndarray:
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    table = look_up(vocab, list(numbers)).astype(np.float16)
    return table[[numbers[word] for word in tokens.words]]


def probe_tags(
    bilm: BiLMBase,
    train: Iterable[TaggedSentence],
    dev: Iterable[TaggedSentence],
    *,
    attrs: Sequence[str] = ("pos",),
    static: Vocab | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Train linear classifiers on each layer and on the mean of all layers, and measure
    their accuracy.

    attrs (Sequence[str]): The kinds of tags to predict: "pos", "tag" or "morph".
    static (Vocab | None): Word vectors to compare with.
    seed (int): The seed of the classifiers.
    RETURNS (list[dict[str, Any]]): For each attribute its name ("task"), the number of
        words in "train" and "dev", and "rows" with the accuracy of each classifier.
    """
    with TemporaryDirectory() as temporary:
        data_sets = []
        for name, sentences in (("train", train), ("dev", dev)):
            folder = Path(temporary) / name
            folder.mkdir()
            data_sets.append(EmbeddedTokens(bilm, sentences, folder, progress))
        embedded_train, embedded_dev = data_sets
        return [
            _probe_attr(attr, embedded_train, embedded_dev, static, seed)
            for attr in attrs
        ]


def _probe_attr(
    attr: str,
    train: EmbeddedTokens,
    dev: EmbeddedTokens,
    static: Vocab | None,
    seed: int,
) -> dict[str, Any]:
    train_rows, dev_rows = train.rows_with_tag(attr), dev.rows_with_tag(attr)
    for name, rows in (("TRAIN", train_rows), ("DEV", dev_rows)):
        if not len(rows):
            raise ValueError(f"found no words with a {attr} in {name}; expected some")
    tags = [train.tags[attr][row] for row in train_rows]
    gold = [dev.tags[attr][row] for row in dev_rows]
    numbers = {tag: number for number, tag in enumerate(sorted(set(tags)))}
    if len(numbers) < 2:
        raise ValueError(
            f"found '{tags[0]}' as the {attr} of all words in TRAIN; expected at least "
            "two different ones"
        )
    labels = np.array([numbers[tag] for tag in tags])
    expected = np.array([numbers.get(tag, -1) for tag in gold])

    def measure(get_vectors: GetVectors) -> float:
        model = fit(get_vectors(train)[train_rows], labels, len(numbers), seed=seed)
        return float((model.predict(get_vectors(dev)[dev_rows]) == expected).mean())

    guesses = predict_most_frequent(
        [train.words[row] for row in train_rows],
        tags,
        [dev.words[row] for row in dev_rows],
    )
    hits = [guess == tag for guess, tag in zip(guesses, gold)]
    results = [_make_row("most frequent tag", None, float(np.mean(hits)))]
    if static is not None:
        accuracy = measure(partial(get_static_vectors, static))
        results.append(_make_row("static vectors", None, accuracy))
    for name in train.layer_names:
        accuracy = measure(partial(get_layer, name))
        results.append(_make_row(f"layer {name}", int(name), accuracy))
    results.append(_make_row("mix", "mix", measure(get_mix)))
    return {"task": attr, "train": len(tags), "dev": len(gold), "rows": results}


def _make_row(name: str, layer: Any, accuracy: float) -> dict[str, Any]:
    return {"name": name, "layer": layer, "accuracy": accuracy}


def predict_most_frequent(
    train_words: Sequence[str], train_tags: Sequence[str], words: Sequence[str]
) -> list[str]:
    """Return the tag that each word has most often in the training data. A word that
    does not occur there gets the tag that is most frequent overall."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(train_words, train_tags):
        counts[word][tag] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    majority = Counter(train_tags).most_common(1)[0][0]
    return [best.get(word, majority) for word in words]
