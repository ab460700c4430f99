"""Writes the files of a corpus while its text is read."""

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

VERSION = 1
WORDS, COUNTS = "words.txt", "counts.npy"
PARTS = ("train", "dev")
MAX_BLOCK = 2**13  # tokens after which a document is cut, to be shuffled in parts


class CorpusWriter:
    """Appends streams to files under numbers in the order in which words turn up; then
    renumbers them by frequency. Memory grows with distinct words and blocks only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: dict[str, int] = {}
        self.counts = np.zeros(1024, dtype=np.int64)
        self.files = [(folder / f"{part}.raw").open("wb") for part in PARTS]
        self.lengths = [0, 0]
        self.sentences = [0, 0]
        self.blocks = [array("q"), array("q")]
        self.documents = [0, 0]
        # Where documents to train on begin, as long as none is held out.
        self.starts = array("q")

    def add(
        self,
        words: list[str],
        stream: np.ndarray,
        documents: np.ndarray,
        paragraphs: np.ndarray,
        part: int,
    ) -> None:
        table = np.zeros(len(words) + 1, dtype=np.int32)
        numbers = self.numbers
        table[1:] = [numbers.setdefault(word, len(numbers) + 1) for word in words]
        if len(numbers) >= len(self.counts):
            grown = np.zeros(2 * len(numbers), dtype=np.int64)
            grown[: len(self.counts)] = self.counts
            self.counts = grown
        if part == 0:
            found = np.bincount(stream, minlength=len(table))
            np.add.at(self.counts, table[1:], found[1 : len(table)])
        table[stream].astype("<i4").tofile(self.files[part])
        self._add_blocks(documents, paragraphs, part)
        if part == 0 and not self.lengths[1]:
            self.starts.extend((self.lengths[0] + documents).tolist())
        self.lengths[part] += len(stream)
        self.sentences[part] += int(np.count_nonzero(stream == 0))
        self.documents[part] += len(documents)

    def _add_blocks(
        self, documents: np.ndarray, paragraphs: np.ndarray, part: int
    ) -> None:
        blocks = self.blocks[part]
        starts = set(documents.tolist())
        for place in paragraphs.tolist():
            at = self.lengths[part] + place
            if not blocks or place in starts or at - blocks[-1] >= MAX_BLOCK:
                blocks.append(at)

    def hold_out_one(self, share: float) -> None:
        """If nothing is held out, move the document that is closest to this share of
        the text. Of one document, nothing can be held out."""
        if self.lengths[1] or self.documents[0] < 2:
            return
        places = np.append(self.starts, self.lengths[0])
        sizes = np.diff(places)
        chosen = int(np.argmin(np.abs(sizes - share * self.lengths[0])))
        begin, end = places[chosen : chosen + 2].tolist()
        self._move(begin, end)
        self.documents = [self.documents[0] - 1, 1]
        self.lengths = [self.lengths[0] - (end - begin), end - begin]
        blocks = np.array(self.blocks[0])
        inside = (blocks >= begin) & (blocks < end)
        kept = blocks[~inside]
        kept[kept >= end] -= end - begin
        self.blocks = [array("q", kept), array("q", blocks[inside] - begin)]

    def _move(self, begin: int, end: int) -> None:
        """Cut a part of the text to train on out and write it as text held out."""
        for file in self.files:
            file.close()
        source, target = (self.folder / f"{part}.raw" for part in PARTS)
        rest = self.folder / "rest.raw"
        with source.open("rb") as old, rest.open("wb") as new, target.open("wb") as out:
            for tokens, place in _read_tokens(old):
                inside = (place >= begin) & (place < end)
                moved = tokens[inside]
                np.subtract.at(self.counts, moved[moved > 0], 1)
                n_sentences = int(np.count_nonzero(moved == 0))
                self.sentences[0] -= n_sentences
                self.sentences[1] += n_sentences
                moved.tofile(out)
                tokens[~inside].tofile(new)
        os.replace(rest, source)

    def finish(self) -> dict[str, Any]:
        n_words = len(self.numbers)
        counts = self.counts[1 : n_words + 1]
        # Most frequent first; among equals, as they turned up.
        order = np.argsort(-counts, kind="stable")
        rank = np.zeros(n_words + 1, dtype="<i4")
        rank[1 + order] = np.arange(1, n_words + 1)
        words = list(self.numbers)
        text = "".join(words[number] + "\n" for number in order)
        (self.folder / WORDS).write_bytes(text.encode("utf8"))
        np.save(self.folder / COUNTS, counts[order])
        meta: dict[str, Any] = {"version": VERSION, "n_distinct": n_words}
        for number, (part, file) in enumerate(zip(PARTS, self.files)):
            file.close()
            _renumber(self.folder / f"{part}.raw", self.folder / f"{part}.tokens", rank)
            np.save(self.folder / f"{part}.blocks.npy", np.array(self.blocks[number]))
            meta[part] = {
                "n_words": self.lengths[number] - self.sentences[number],
                "n_sentences": self.sentences[number],
                "n_documents": self.documents[number],
            }
        return meta


def _renumber(source: Path, target: Path, rank: np.ndarray) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        for tokens, _ in _read_tokens(old):
            rank[tokens].tofile(new)
    source.unlink()


def _read_tokens(file: IO[bytes]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """YIELDS: Some tokens, and their places in the file."""
    place = 0
    while True:
        tokens = np.fromfile(file, dtype="<i4", count=2**16)
        if not len(tokens):
            return
        yield tokens, np.arange(place, place + len(tokens))
        place += len(tokens)
