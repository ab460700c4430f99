"""Nearest-neighbour senses from each layer (Table 5 of the paper)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from spacy.vocab import Vocab

from ..bilm import BiLM
from .layer_vectors import (
    ROUNDING,
    Tell,
    embed_stream,
    layer_names,
    silent,
    unit,
    with_mix,
)
from .static_vectors import static_vectors
from .wsd_files import Instance, Sentence

Keys = Mapping[str, tuple[str, ...]]


class Sense:
    """A sense of a word: how often it was seen, and the sum of its vectors of each
    kind, (n_kinds, width)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.total: Any = 0

    def add(self, vectors: np.ndarray) -> None:
        self.count += 1
        self.total = self.total + vectors

    @property
    def vectors(self) -> np.ndarray:
        """RETURNS (np.ndarray): The means, of length 1: (n_kinds, width)."""
        return unit(self.total / self.count)


class Senses:
    """The senses that were seen of each lemma and part of speech, with vectors of one
    kind or several, such as layers."""

    def __init__(self) -> None:
        self.by_word: dict[tuple[str, str], dict[str, Sense]] = {}
        self.by_lemma: dict[str, Counter[str]] = {}
        self.n_instances = 0

    def add(
        self, instance: Instance, names: Iterable[str], vectors: np.ndarray
    ) -> None:
        """vectors (np.ndarray): (n_kinds, width)."""
        senses = self.by_word.setdefault((instance.lemma, instance.pos), {})
        counts = self.by_lemma.setdefault(instance.lemma, Counter())
        for name in names:
            senses.setdefault(name, Sense(name)).add(vectors)
            counts[name] += 1
        self.n_instances += 1

    def known(self, instance: Instance) -> list[Sense]:
        """RETURNS (list[Sense]): The most frequent one first; empty for a new word."""
        senses = self.by_word.get((instance.lemma, instance.pos), {})
        return sorted(senses.values(), key=lambda sense: -sense.count)

    def fallback(self, instance: Instance) -> str | None:
        """RETURNS (str | None): The most frequent sense of the lemma as any part of
        speech, if there is one."""
        counts = self.by_lemma.get(instance.lemma)
        return counts.most_common(1)[0][0] if counts else None


def predict(
    senses: Senses, instance: Instance, vectors: np.ndarray
) -> list[str | None]:
    """vectors (np.ndarray): (n_kinds, width).
    RETURNS (list[str | None]): The most frequent sense, and the nearest one by each
        kind of vector; None if nothing is known of the lemma.
    """
    known = senses.known(instance)
    if not known:
        return [senses.fallback(instance)] * (len(vectors) + 1)
    nearest = np.zeros(len(vectors), dtype=np.int64)
    if len(known) > 1:
        means = np.stack([sense.vectors for sense in known])
        cosines = np.einsum("skw,kw->ks", means, unit(vectors))
        # Without context, or without a vector, senses are as near as each other, up to
        # rounding: the most frequent of them.
        nearest = (cosines >= cosines.max(1, keepdims=True) - ROUNDING).argmax(1)
    return [known[0].name, *(known[number].name for number in nearest)]


def probe_senses(
    bilm: BiLM,
    train: Iterable[Sentence],
    dev: Iterable[Sentence],
    train_keys: Keys,
    dev_keys: Keys,
    *,
    static: Vocab | None = None,
    tell: Tell = silent,
) -> dict[str, Any]:
    """static (Vocab | None): Whose word vectors choose as layers do, in a row of
        their own.
    RETURNS (dict[str, Any]): "task", how many instances were used, how many of DEV
        have a lemma that TRAIN has not ("unseen", which count as errors), and "rows"
        with the accuracy of each way to choose.
    """
    rows: list[dict[str, Any]] = [{"name": "most frequent sense", "layer": None}]
    if static is not None:
        rows.append({"name": "static vectors", "layer": None})
    for name in layer_names(bilm)[:-1]:
        label = "layer 0 (without context)" if name == "0" else f"layer {name}"
        rows.append({"name": label, "layer": int(name)})
    rows.append({"name": "mix", "layer": "mix"})

    senses, by_static = Senses(), Senses()
    for instance, vectors, words in _instances(bilm, train, train_keys, tell):
        senses.add(instance, train_keys[instance.id], vectors)
        if static is not None:
            vector = _static_vector(static, words)
            by_static.add(instance, train_keys[instance.id], vector)
    if not senses.n_instances:
        raise ValueError("found no instance of TRAIN in its key file; expected some")
    n_right = np.zeros(len(rows), dtype=np.int64)
    n_dev = n_unseen = 0
    for instance, vectors, words in _instances(bilm, dev, dev_keys, tell):
        guesses = predict(senses, instance, vectors)
        if static is not None:
            vector = _static_vector(static, words)
            guesses[1:1] = predict(by_static, instance, vector)[1:]
        n_right += [guess in dev_keys[instance.id] for guess in guesses]
        n_unseen += guesses[0] is None
        n_dev += 1
    if not n_dev:
        raise ValueError("found no instance of DEV in its key file; expected some")
    for row, number in zip(rows, n_right.tolist()):
        row["accuracy"] = number / n_dev
    return {
        "task": "senses",
        "train": senses.n_instances,
        "dev": n_dev,
        "unseen": n_unseen,
        "rows": rows,
    }


def _static_vector(static: Vocab, words: list[str]) -> np.ndarray:
    """RETURNS (np.ndarray): The mean of the words that have one, (1, width)."""
    vectors = static_vectors(static, words)
    found = vectors[vectors.any(1)]
    return (found if len(found) else vectors).mean(0, keepdims=True)


def _instances(
    bilm: BiLM, sentences: Iterable[Sentence], keys: Keys, tell: Tell
) -> Iterable[tuple[Instance, np.ndarray, list[str]]]:
    """YIELDS (tuple[Instance, np.ndarray, list[str]]): The instances with a key, the
    means of their words' vectors in each layer and the mix, (n_layers + 2, width), and
    their words."""
    wanted = (s for s in sentences if any(i.id in keys for i in s.instances))
    for sentence, layers in embed_stream(bilm, wanted, lambda s: s.words, tell):
        for instance in sentence.instances:
            if instance.id in keys:
                place = slice(instance.start, instance.end)
                vectors = with_mix(layers[:, place].mean(1))
                yield instance, vectors, sentence.words[place]
