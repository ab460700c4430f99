"""Write the files of a corpus while its text is being tokenized."""

import os
from array import array
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..text.tokenized_chunks import WordStream

VERSION = 2
WORDS, COUNTS = "words.txt", "counts.npy"
PARTS = ("train", "dev")
TRAIN, DEV = range(2)  # indices of PARTS
MAX_BLOCK = 2**13  # tokens; longer documents are divided, to be shuffled in parts


class CorpusWriter:
    """Appends streams to the files of a corpus. At first, words are numbered in the
    order in which they are found; finish() renumbers them by frequency. The memory that
    this needs grows only with the numbers of distinct words and of blocks.

    folder (Path): The folder in which the files are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: dict[str, int] = {}
        self.counts = np.zeros(1024, dtype=np.int64)
        self.files = [(folder / f"{part}.raw").open("wb") for part in PARTS]
        self.lengths = [0, 0]
        self.sentences = [0, 0]
        self.blocks = [array("q"), array("q")]
        self.documents = [0, 0]
        # The indices of the tokens that begin a document to train on. They are needed
        # only if no document is held out, so they are collected only until then.
        self.starts = array("q")

    def __enter__(self) -> "CorpusWriter":
        return self

    def __exit__(self, *error: object) -> None:
        for file in self.files:
            file.close()

    def add(self, words: list[str], stream: WordStream, part: int) -> None:
        """Append a stream.

        words (list[str]): The words of the stream. Word number n is words[n - 1].
        stream (WordStream): The stream.
        part (int): TRAIN or DEV.
        """
        tokens = stream.tokens
        table = np.zeros(len(words) + 1, dtype=np.int32)
        numbers = self.numbers
        table[1:] = [numbers.setdefault(word, len(numbers) + 1) for word in words]
        if len(numbers) >= len(self.counts):
            grown = np.zeros(2 * len(numbers), dtype=np.int64)
            grown[: len(self.counts)] = self.counts
            self.counts = grown
        if part == TRAIN:
            found = np.bincount(tokens, minlength=len(table))
            np.add.at(self.counts, table[1:], found[1 : len(table)])
        self.files[part].write(table[tokens].astype("<i4").data)
        self._add_blocks(stream, part)
        if part == TRAIN and not self.lengths[DEV]:
            self.starts.extend((self.lengths[TRAIN] + stream.documents).tolist())
        self.lengths[part] += len(tokens)
        self.sentences[part] += int(np.count_nonzero(tokens == 0))
        self.documents[part] += len(stream.documents)

    def _add_blocks(self, stream: WordStream, part: int) -> None:
        """Begin a block with each document. Within a long document, begin a block with
        the first paragraph after each MAX_BLOCK tokens."""
        blocks = self.blocks[part]
        documents = set(stream.documents.tolist())
        for start in stream.paragraphs.tolist():
            at = self.lengths[part] + start
            if not blocks or start in documents or at - blocks[-1] >= MAX_BLOCK:
                blocks.append(at)

    def hold_out_one(self, share: float) -> None:
        """Hold out one document if none is held out yet: the one whose length is
        closest to this share of the text. If there is only one document, do nothing.
        """
        if self.lengths[DEV] or self.documents[TRAIN] < 2:
            return
        limits = np.append(self.starts, self.lengths[TRAIN])
        sizes = np.diff(limits)
        chosen = int(np.argmin(np.abs(sizes - share * self.lengths[TRAIN])))
        begin, end = limits[chosen : chosen + 2].tolist()
        self._move_to_dev(begin, end)
        self.documents = [self.documents[0] - 1, 1]
        self.lengths = [self.lengths[0] - (end - begin), end - begin]
        blocks = np.array(self.blocks[0])
        inside = (blocks >= begin) & (blocks < end)
        kept = blocks[~inside]
        kept[kept >= end] -= end - begin
        self.blocks = [array("q", kept), array("q", blocks[inside] - begin)]

    def _move_to_dev(self, begin: int, end: int) -> None:
        """Move tokens from the text to train on to the text that is held out.

        begin (int): The index of the first token to move.
        end (int): The index of the first token after them.
        """
        for file in self.files:
            file.close()
        source, target = (self.folder / f"{part}.raw" for part in PARTS)
        rest = self.folder / "rest.raw"
        with source.open("rb") as old, rest.open("wb") as new, target.open("wb") as out:
            for tokens, index in _read_tokens(old):
                inside = (index >= begin) & (index < end)
                moved = tokens[inside]
                np.subtract.at(self.counts, moved[moved > 0], 1)
                n_sentences = int(np.count_nonzero(moved == 0))
                self.sentences[0] -= n_sentences
                self.sentences[1] += n_sentences
                out.write(moved.data)
                new.write(tokens[~inside].data)
        os.replace(rest, source)

    def finish(self) -> dict[str, Any]:
        """Renumber the words by frequency and close the files.

        RETURNS (dict[str, Any]): The numbers of words, sentences and documents.
        """
        n_words = len(self.numbers)
        counts = self.counts[1 : n_words + 1]
        # Words with the same frequency stay in the order in which they were found.
        order = np.argsort(-counts, kind="stable")
        rank = np.zeros(n_words + 1, dtype="<i4")
        rank[1 + order] = np.arange(1, n_words + 1)
        words = list(self.numbers)
        text = "".join(words[number] + "\n" for number in order)
        (self.folder / WORDS).write_bytes(text.encode("utf8"))
        _save_array(self.folder / COUNTS, counts[order])
        meta: dict[str, Any] = {"version": VERSION, "n_distinct": n_words}
        for number, (part, file) in enumerate(zip(PARTS, self.files)):
            file.close()
            _renumber(self.folder / f"{part}.raw", self.folder / f"{part}.tokens", rank)
            blocks = np.array(self.blocks[number], dtype=np.int64)
            _save_array(self.folder / f"{part}.blocks.npy", blocks)
            meta[part] = {
                "n_words": self.lengths[number] - self.sentences[number],
                "n_sentences": self.sentences[number],
                "n_documents": self.documents[number],
            }
        return meta


def _save_array(path: Path, array: np.ndarray) -> None:
    """Write an array. np.save would not tell why it failed, such as on a full disk."""
    data = BytesIO()
    np.save(data, array)
    path.write_bytes(data.getbuffer())


def _renumber(source: Path, target: Path, rank: np.ndarray) -> None:
    """Replace each number of a file.

    source (Path): The file to read, which is removed.
    target (Path): The file to write.
    rank (np.ndarray): The new number of each old number, (n_words + 1,).
    """
    with source.open("rb") as old, target.open("wb") as new:
        for tokens, _ in _read_tokens(old):
            new.write(rank[tokens].data)
    source.unlink()


def _read_tokens(file: IO[bytes]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read a file part by part.

    YIELDS (tuple[np.ndarray, np.ndarray]): The tokens of a part, and their indices in
        the file, both (n_tokens,).
    """
    index = 0
    while True:
        tokens = np.fromfile(file, dtype="<i4", count=2**16)
        if not len(tokens):
            return
        yield tokens, np.arange(index, index + len(tokens))
        index += len(tokens)
