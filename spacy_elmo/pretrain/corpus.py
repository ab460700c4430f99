"""Text on disk in the form that training reads: distinct words once, then numbers."""

import json
import os
from array import array
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .text import find_files
from .tokenize import Splitter, make_chunks, split_all

VERSION = 1
META, WORDS, COUNTS = "corpus.json", "words.txt", "counts.npy"
PARTS = ("train", "dev")
FILES: Tuple[str, ...] = (META, WORDS, COUNTS)
FILES += tuple(f"{part}.{end}" for part in PARTS for end in ("tokens", "blocks.npy"))
MAX_BLOCK = 2**13  # tokens after which a document is cut, to be shuffled in parts


class Stream(NamedTuple):
    """A text as numbers of words, counted from 1, with 0 before each sentence.

    tokens (np.ndarray): int32, (n,), memory-mapped.
    blocks (np.ndarray): Where documents, or parts of long ones, begin, (n_blocks,).
    """

    tokens: np.ndarray
    blocks: np.ndarray

    @property
    def n_words(self) -> int:
        return len(self.tokens) - self.n_sentences

    @property
    def n_sentences(self) -> int:
        return int(np.count_nonzero(self.tokens == 0))


class Corpus:
    """An opened corpus.

    folder (Path): Where build_corpus wrote it.

    words (List[str]): Distinct words by falling frequency in the text to train on; word
        number n of a stream is words[n - 1].
    counts (np.ndarray): How often each occurs there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: Dict[str, Any] = json.loads((folder / META).read_text("utf8"))
        text = (folder / WORDS).read_bytes().decode("utf8")
        self.words: List[str] = text.split("\n")[:-1]
        self.counts: np.ndarray = np.load(folder / COUNTS)
        self.train = _open_stream(folder, "train")
        self.dev = _open_stream(folder, "dev")


def _open_stream(folder: Path, part: str) -> Stream:
    path = folder / f"{part}.tokens"
    tokens = np.zeros(0, dtype="<i4")
    if os.path.getsize(path):
        tokens = np.memmap(path, dtype="<i4", mode="r")
    return Stream(tokens, np.load(folder / f"{part}.blocks.npy"))


def build_corpus(
    raw_text: Sequence[str],
    folder: Path,
    *,
    splitter: Splitter,
    dev_text: Sequence[str] = (),
    dev_share: float = 0.01,
    n_process: int = 1,
) -> Tuple[Corpus, bool]:
    """Write a corpus, unless it is there already.

    raw_text (Sequence[str]): Files, folders, patterns.
    dev_text (Sequence[str]): The same for the text held out; if there is none, a part
        of the documents of raw_text.
    dev_share (float): How large a part.
    RETURNS (Tuple[Corpus, bool]): The corpus, and whether it had to be written.
    """
    files = find_files(raw_text)
    dev_files = find_files(dev_text)
    share = 0.0 if dev_files else dev_share
    fingerprint = _fingerprint(files, dev_files, splitter, share)
    if (folder / META).exists():
        found = json.loads((folder / META).read_text("utf8"))
        if found.get("fingerprint") == fingerprint:
            return Corpus(folder), False
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:  # nothing else: it may be a folder with more in it
        (folder / name).unlink(missing_ok=True)
    writer = _Writer(folder)
    troubles: Counter[str] = Counter()
    chunks = make_chunks(files, share, troubles)
    for words in split_all(splitter, share, chunks, n_process):
        writer.add(
            words.words, words.streams[0], words.documents[0], words.paragraphs[0], 0
        )
        writer.add(
            words.words, words.streams[1], words.documents[1], words.paragraphs[1], 1
        )
    for words in split_all(
        splitter, 0.0, make_chunks(dev_files, 0.0, troubles), n_process
    ):
        writer.add(
            words.words, words.streams[0], words.documents[0], words.paragraphs[0], 1
        )
    meta = writer.finish()
    if not meta["train"]["n_words"]:
        raise ValueError(f"{', '.join(raw_text)}: found no words to train on")
    meta.update(fingerprint=fingerprint, troubles=dict(troubles))
    part = folder / (META + ".part")
    part.write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", "utf8")
    os.replace(part, folder / META)  # says: all is there
    return Corpus(folder), True


def _fingerprint(
    files: List[Path], dev_files: List[Path], splitter: Splitter, share: float
) -> str:
    import spacy

    facts: List[Any] = [VERSION, spacy.__version__, list(splitter), share]
    for group in (files, dev_files):
        stats = [(str(path), path.stat()) for path in group]
        facts.append([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return blake2b(json.dumps(facts).encode()).hexdigest()[:32]


class _Writer:
    """Appends streams to files under numbers in the order in which words turn up; then
    renumbers them by frequency. Memory grows with distinct words and blocks only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: Dict[str, int] = {}
        self.counts = np.zeros(1024, dtype=np.int64)
        self.files = [(folder / f"{part}.raw").open("wb") for part in PARTS]
        self.lengths = [0, 0]
        self.sentences = [0, 0]
        self.blocks = [array("q"), array("q")]
        self.documents = [0, 0]

    def add(
        self,
        words: List[str],
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

    def finish(self) -> Dict[str, Any]:
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
        meta: Dict[str, Any] = {"version": VERSION, "n_distinct": n_words}
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
        while True:
            tokens = np.fromfile(old, dtype="<i4", count=2**16)
            if not len(tokens):
                break
            rank[tokens].tofile(new)
    source.unlink()


def describe_troubles(troubles: Dict[str, int]) -> Optional[str]:
    """RETURNS (Optional[str]): What was wrong with the input, in a sentence."""
    found = [
        f"{number:,} {what}" for what, number in sorted(troubles.items()) if number
    ]
    return ", ".join(found) or None
