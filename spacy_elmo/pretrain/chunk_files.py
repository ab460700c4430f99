"""Store tokenized chunks in a file, for another process to read."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ..text.tokenized_chunks import TokenizedChunk, WordStream


def save_chunks(chunks: Iterable[TokenizedChunk], path: Path) -> None:
    """Write chunks to a file, one after another."""
    with path.open("wb") as file:
        for chunk in chunks:
            # Words contain no line ends.
            words = "".join(word + "\n" for word in chunk.words)
            np.save(file, np.frombuffer(words.encode("utf8"), np.uint8))
            for stream in chunk.streams:
                for array in stream:
                    np.save(file, array)


def load_chunks(path: Path) -> Iterator[TokenizedChunk]:
    """Load the chunks of a file, one after another."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            words = np.load(file).tobytes().decode("utf8").split("\n")[:-1]
            train = WordStream(np.load(file), np.load(file), np.load(file))
            held_out = WordStream(np.load(file), np.load(file), np.load(file))
            yield TokenizedChunk(words, (train, held_out))


def take_turns(shares: list[Iterator[TokenizedChunk]]) -> Iterator[TokenizedChunk]:
    """Yield a chunk of each share in turn, until a share has none left. This is the
    order of the text if number n of N processes has tokenized each Nth chunk from the
    nth on."""
    while True:
        for share in shares:
            chunk = next(share, None)
            if chunk is None:
                return
            yield chunk
