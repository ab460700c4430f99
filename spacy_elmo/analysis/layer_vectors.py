"""Vectors of a stream of sentences, a batch at a time, and of all of them on disk."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from ..bilm import BiLM

BATCH = 2**14  # tokens: enough to sort by length, little memory
ROUNDING = 1e-6  # cosines that differ by less are the same
LARGEST = float(np.finfo(np.float16).max)

ItemT = TypeVar("ItemT")
Tell = Callable[[int], object]  # told of each number of tokens that are done


def silent(n_tokens: int) -> None:
    """For those who do not want to be told."""


def embed_stream(
    bilm: BiLM,
    items: Iterable[ItemT],
    words: Callable[[ItemT], list[str]],
    tell: Tell = silent,
) -> Iterator[tuple[ItemT, np.ndarray]]:
    """YIELDS (tuple[ItemT, np.ndarray]): Each item and the layers of its words,
    (n_layers + 1, n_tokens, width)."""
    for batch in in_batches(items, words):
        sentences = [words(item) for item in batch]
        yield from zip(batch, bilm.embed(sentences))
        tell(sum(map(len, sentences)))


def in_batches(
    items: Iterable[ItemT], words: Callable[[ItemT], list[str]]
) -> Iterator[list[ItemT]]:
    batch: list[ItemT] = []
    n_tokens = 0
    for item in items:
        batch.append(item)
        n_tokens += len(words(item))
        if n_tokens >= BATCH:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch


def with_mix(layers: np.ndarray) -> np.ndarray:
    """RETURNS (np.ndarray): The layers (n_layers + 1, ...), and after them their mean:
    (n_layers + 2, ...)."""
    return np.concatenate([layers, layers.mean(0, keepdims=True)])


def layer_names(bilm: BiLM) -> list[str]:
    """RETURNS (list[str]): The names of what with_mix gives."""
    return [*map(str, range(bilm.config.lstm.n_layers + 1)), "mix"]


def unit(vectors: np.ndarray) -> np.ndarray:
    """RETURNS (np.ndarray): Vectors (..., width) of length 1; those of length 0 stay
    as they are."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


class LayerWriter:
    """Writes vectors to a folder, a file for each layer: float16, row after row."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        with ExitStack() as stack:
            self.files = [
                stack.enter_context(layer_path(folder, name).open("wb"))
                for name in names
            ]
            self.stack = stack.pop_all()

    def add(self, layers: np.ndarray) -> None:
        """layers (np.ndarray): (n_names, n_tokens, width)."""
        layers = layers.clip(-LARGEST, LARGEST).astype(np.float16)
        for file, vectors in zip(self.files, layers):
            file.write(vectors.tobytes())

    def __enter__(self) -> "LayerWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stack.close()


def layer_path(folder: Path, name: str) -> Path:
    return folder / f"layer-{name}.float16"


def read_layer(folder: Path, name: str, width: int) -> np.ndarray:
    """RETURNS (np.ndarray): (n_tokens, width), float16, in memory."""
    return np.fromfile(layer_path(folder, name), np.float16).reshape(-1, width)


def map_layer(folder: Path, name: str, width: int) -> np.ndarray:
    """RETURNS (np.ndarray): (n_tokens, width), float16, on disk."""
    # "c": torch warns of arrays that cannot be written to. Nobody writes.
    data = np.memmap(layer_path(folder, name), np.float16, "c")
    return data.reshape(-1, width)
