"""Store the parts of an unfinished embedding, so that damage to them is found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..files import write_atomically
from ..fingerprints import checksum_bytes, has_checksum
from ..regular_files import open_regular


class Part(NamedTuple):
    """Some sentences and their vectors.

    first (int): The number of the first sentence in the whole text.
    sentences (list[list[str]]): The words of each sentence.
    layers (list[np.ndarray]): (n_layers + 1, n_tokens, width) for each sentence.
    """

    first: int
    sentences: list[list[str]]
    layers: list[np.ndarray]


def write_part(path: Path, part: Part) -> None:
    """Write a part: a line with the checksum of the rest, a line of JSON, and the
    layers of one sentence after another as float32."""
    n_layers, _, width = part.layers[0].shape
    head = json.dumps([part.first, n_layers, width, part.sentences])
    arrays = [np.ascontiguousarray(array, dtype="<f4") for array in part.layers]
    rest = b"".join([head.encode(), b"\n", *(array.data for array in arrays)])

    def write(target: Path) -> None:
        with target.open("wb") as file:
            file.write(checksum_bytes(rest).encode() + b"\n")
            file.write(rest)

    write_atomically(path, write)


def read_part(path: Path) -> Part:
    """Read a part. Raise ValueError if it is damaged."""
    with open_regular(path) as file:
        checksum = file.readline(1000).strip()
        rest = file.read()
    if not has_checksum(rest, checksum.decode("ascii", "replace")):
        raise ValueError(f"{path}: the checksum does not match")
    length = rest.index(b"\n")
    first, n_layers, width, sentences = json.loads(rest[:length])
    numbers = np.frombuffer(rest, dtype="<f4", offset=length + 1)
    sizes = [n_layers * len(words) * width for words in sentences]
    arrays = np.split(numbers, np.cumsum(sizes)[:-1])
    layers = [
        array.reshape(n_layers, len(words), width)
        for array, words in zip(arrays, sentences)
    ]
    return Part(first, sentences, layers)


def is_usable(path: Path, say: Callable[[str], None]) -> bool:
    """Return whether a part is there and undamaged.

    say (Callable[[str], None]): Called with a sentence about the damage.
    """
    if not path.exists():
        return False
    try:
        read_part(path)
    except (OSError, ValueError) as error:
        say(f"{error}; computing this part again")
        return False
    return True
