"""Store layers in a folder: one file per layer with one row of float16 numbers per
token."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np

LARGEST = float(np.finfo(np.float16).max)


class LayerWriter:
    """Writes the layers of one sentence after the other. Use it in a `with` block.

    folder (Path): An existing folder.
    names (list[str]): The names of the layers.
    """

    def __init__(self, folder: Path, names: list[str]) -> None:
        with ExitStack() as stack:
            self.files = [
                stack.enter_context(layer_path(folder, name).open("wb"))
                for name in names
            ]
            self.stack = stack.pop_all()

    def add(self, layers: np.ndarray) -> None:
        """Append the layers of some tokens, (len(names), n_tokens, width)."""
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
    """Read a layer into memory: (n_tokens, width), float16."""
    return np.fromfile(layer_path(folder, name), np.float16).reshape(-1, width)


def map_layer(folder: Path, name: str, width: int) -> np.ndarray:
    """Memory-map a layer, so that only what is used is read from its file:
    (n_tokens, width), float16."""
    # The mode is "c" (copy on write), because torch warns about read-only arrays.
    data = np.memmap(layer_path(folder, name), np.float16, "c")
    return data.reshape(-1, width)
