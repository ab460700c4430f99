"""Measure how well each layer alone tells word senses apart (Table 5 of the paper).

The sense of a word is predicted as the one whose mean vector in the training data is
nearest to the vector of the word.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from spacy.vocab import Vocab

from ..bilm import BiLMBase
from .layer_vectors import (
    ROUNDING,
    Progress,
    add_mix,
    embed_stream,
    layer_names,
    no_progress,
    to_unit_length,
)
from .static_vectors import look_up
from .wsd_files import Instance, SenseSentence

Keys = Mapping[str, tuple[str, ...]]  # the correct senses of an instance, by its id


class Sense:
    """A sense of a word: how often it occurs in the training data, and the sum of its
    vectors of each kind (see SenseInventory), (n_kinds, width)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.total: Any = 0

    def add(self, vectors: np.ndarray) -> None:
        self.count += 1
        self.total = self.total + vectors

    @property
    def mean_vectors(self) -> np.ndarray:
        """Return the mean of each kind of vector, at unit length, (n_kinds, width)."""
        return to_unit_length(self.total / self.count)


class SenseInventory:
    """The senses in the training data, by lemma and part of speech.

    Each sense has one or more kinds of vectors. Each layer is one kind; the mix and the
    static vectors are two others.
    """

    def __init__(self) -> None:
        self.by_word: dict[tuple[str, str], dict[str, Sense]] = {}
        self.by_lemma: dict[str, Counter[str]] = {}
        self.n_instances = 0

    def add(
        self, instance: Instance, senses: Iterable[str], vectors: np.ndarray
    ) -> None:
        """Add an instance of the training data.

        senses (Iterable[str]): The names of its senses.
        vectors (np.ndarray): One vector of each kind, (n_kinds, width).
        """
        known = self.by_word.setdefault((instance.lemma, instance.pos), {})
        counts = self.by_lemma.setdefault(instance.lemma, Counter())
        for name in senses:
            known.setdefault(name, Sense(name)).add(vectors)
            counts[name] += 1
        self.n_instances += 1

    def get_senses(self, instance: Instance) -> list[Sense]:
        """Return the senses of a word, the most frequent one first. The list is empty
        if the training data does not contain the word."""
        senses = self.by_word.get((instance.lemma, instance.pos), {})
        return sorted(senses.values(), key=lambda sense: -sense.count)

    def get_fallback(self, instance: Instance) -> str | None:
        """Return the most frequent sense of the lemma, whatever the part of speech, or
        None if the training data does not contain the lemma."""
        counts = self.by_lemma.get(instance.lemma)
        return counts.most_common(1)[0][0] if counts else None


def predict(
    inventory: SenseInventory, instance: Instance, vectors: np.ndarray
) -> list[str | None]:
    """Predict the sense of an instance in several ways.

    If the training data has the lemma only as another part of speech, all predictions
    are the most frequent sense of the lemma.

    vectors (np.ndarray): One vector of each kind, (n_kinds, width).
    RETURNS (list[str | None]): The most frequent sense, and the nearest sense by each
        kind of vector. All are None if the training data does not contain the lemma.
    """
    senses = inventory.get_senses(instance)
    if not senses:
        return [inventory.get_fallback(instance)] * (len(vectors) + 1)
    nearest = np.zeros(len(vectors), dtype=np.int64)
    if len(senses) > 1:
        means = np.stack([sense.mean_vectors for sense in senses])
        cosines = np.einsum("skw,kw->ks", means, to_unit_length(vectors))
        # All senses of a form are equally near, except for rounding, in layer 0 and if
        # the word has no static vector. Then take the most frequent sense.
        nearest = (cosines >= cosines.max(1, keepdims=True) - ROUNDING).argmax(1)
    return [senses[0].name, *(senses[number].name for number in nearest)]


def probe_senses(
    bilm: BiLMBase,
    train: Iterable[SenseSentence],
    dev: Iterable[SenseSentence],
    train_keys: Keys,
    dev_keys: Keys,
    *,
    static: Vocab | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Learn senses from TRAIN, predict those of DEV by each layer, and measure the
    accuracy.

    static (Vocab | None): Word vectors to compare with.
    RETURNS (dict[str, Any]): "task", the number of instances in "train" and "dev", how
        many of DEV have a lemma that TRAIN does not contain ("unseen"; they count as
        errors), and "rows" with the accuracy of each way to predict.
    """
    rows = _make_rows(bilm, static is not None)
    by_layers, by_static = SenseInventory(), SenseInventory()
    for instance, vectors, words in _embed_instances(bilm, train, train_keys, progress):
        by_layers.add(instance, train_keys[instance.id], vectors)
        if static is not None:
            vector = _static_vector(static, words)
            by_static.add(instance, train_keys[instance.id], vector)
    if not by_layers.n_instances:
        raise ValueError("found no instance of TRAIN in its key file; expected some")
    n_correct = np.zeros(len(rows), dtype=np.int64)
    n_dev = n_unseen = 0
    for instance, vectors, words in _embed_instances(bilm, dev, dev_keys, progress):
        guesses = predict(by_layers, instance, vectors)
        if static is not None:
            vector = _static_vector(static, words)
            guesses[1:1] = predict(by_static, instance, vector)[1:]
        n_correct += [guess in dev_keys[instance.id] for guess in guesses]
        n_unseen += guesses[0] is None
        n_dev += 1
    if not n_dev:
        raise ValueError("found no instance of DEV in its key file; expected some")
    for row, number in zip(rows, n_correct.tolist()):
        row["accuracy"] = number / n_dev
    return {
        "task": "senses",
        "train": by_layers.n_instances,
        "dev": n_dev,
        "unseen": n_unseen,
        "rows": rows,
    }


def _make_rows(bilm: BiLMBase, has_static: bool) -> list[dict[str, Any]]:
    """Return the rows of the results, still without accuracies, in the order in which
    `probe_senses` makes its guesses."""
    rows: list[dict[str, Any]] = [{"name": "most frequent sense", "layer": None}]
    if has_static:
        rows.append({"name": "static vectors", "layer": None})
    for name in layer_names(bilm)[:-1]:
        label = "layer 0 (without context)" if name == "0" else f"layer {name}"
        rows.append({"name": label, "layer": int(name)})
    return [*rows, {"name": "mix", "layer": "mix"}]


def _static_vector(static: Vocab, words: list[str]) -> np.ndarray:
    """Return the mean vector of those words that have a vector, (1, width). If none
    has one, return zeros."""
    vectors = look_up(static, words)
    found = vectors[vectors.any(1)]
    return (found if len(found) else vectors).mean(0, keepdims=True)


def _embed_instances(
    bilm: BiLMBase, sentences: Iterable[SenseSentence], keys: Keys, progress: Progress
) -> Iterable[tuple[Instance, np.ndarray, list[str]]]:
    """Embed all sentences in which at least one instance has a key.

    YIELDS (tuple[Instance, np.ndarray, list[str]]): Each instance that has a key; the
        mean vector of its words in each layer and in the mix, (n_layers + 2, width);
        and its words.
    """
    wanted = (s for s in sentences if any(i.id in keys for i in s.instances))
    for sentence, layers in embed_stream(bilm, wanted, lambda s: s.words, progress):
        for instance in sentence.instances:
            if instance.id in keys:
                place = slice(instance.start, instance.end)
                vectors = add_mix(layers[:, place].mean(1))
                yield instance, vectors, sentence.words[place]
