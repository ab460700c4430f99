"""Compute the layers of many sentences, one batch at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from ..bilm import BiLMBase

BATCH_TOKENS = 2**14  # little memory, but enough sentences to sort by length
ROUNDING = 1e-6  # cosines that differ by less count as equal

ItemT = TypeVar("ItemT")
Progress = Callable[[int], object]  # called with the number of tokens of each batch


def no_progress(n_tokens: int) -> None:
    """Ignore the progress."""


def embed_stream(
    bilm: BiLMBase,
    items: Iterable[ItemT],
    get_words: Callable[[ItemT], list[str]],
    progress: Progress = no_progress,
) -> Iterator[tuple[ItemT, np.ndarray]]:
    """Embed a stream of items, each of which contains a sentence.

    get_words (Callable[[ItemT], list[str]]): Returns the words of an item's sentence.
    progress (Progress): Called after each batch.
    YIELDS (tuple[ItemT, np.ndarray]): Each item, and the layers of its words,
        (n_layers + 1, n_tokens, width).
    """
    for batch in make_batches(items, get_words):
        sentences = [get_words(item) for item in batch]
        yield from zip(batch, bilm.embed(sentences))
        progress(sum(map(len, sentences)))


def make_batches(
    items: Iterable[ItemT], get_words: Callable[[ItemT], list[str]]
) -> Iterator[list[ItemT]]:
    batch: list[ItemT] = []
    n_tokens = 0
    for item in items:
        batch.append(item)
        n_tokens += len(get_words(item))
        if n_tokens >= BATCH_TOKENS:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch


def add_mix(layers: np.ndarray) -> np.ndarray:
    """Append the mean of the layers: (n_layers + 1, ...) to (n_layers + 2, ...)."""
    return np.concatenate([layers, layers.mean(0, keepdims=True)])


def layer_names(bilm: BiLMBase) -> list[str]:
    """Return the names of the layers that `add_mix` returns: "0", "1", ..., "mix"."""
    return [*map(str, range(bilm.config.lstm.n_layers + 1)), "mix"]


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors (..., width) by their lengths. Zero vectors stay as they are."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)
