"""Text on disk in the form that training reads: distinct words once, then numbers."""

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..fingerprints import fingerprint_data
from ..text.sentences import read_sentences
from ..text.text_files import find_files
from ..text.tokenizers import Tokenization
from ..text.word_streams import make_chunks, split_all
from .corpus_writer import COUNTS, PARTS, VERSION, WORDS, CorpusWriter

META = "corpus.json"
FILES: tuple[str, ...] = (META, WORDS, COUNTS)
FILES += tuple(f"{part}.{end}" for part in PARTS for end in ("tokens", "blocks.npy"))


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

    words (list[str]): Distinct words by falling frequency in the text to train on; word
        number n of a stream is words[n - 1].
    counts (np.ndarray): How often each occurs there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: dict[str, Any] = json.loads((folder / META).read_text("utf8"))
        text = (folder / WORDS).read_bytes().decode("utf8")
        self.words: list[str] = text.split("\n")[:-1]
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
    tokenization: Tokenization,
    dev_text: Sequence[str] = (),
    dev_share: float = 0.01,
    n_process: int = 1,
) -> tuple[Corpus, bool]:
    """Write a corpus, unless it is there already.

    raw_text (Sequence[str]): Files, folders, patterns.
    dev_text (Sequence[str]): The same for the text held out; if there is none, a part
        of the documents of raw_text.
    dev_share (float): How large a part; of more than one document, at least one.
    RETURNS (tuple[Corpus, bool]): The corpus, and whether it had to be written.
    """
    files = find_files(raw_text)
    dev_files = find_files(dev_text)
    share = 0.0 if dev_files else dev_share
    fingerprint = _fingerprint(files, dev_files, tokenization, share)
    if _is_there(folder, fingerprint, share, given=bool(dev_files)):
        return Corpus(folder), False
    if dev_files and next(read_sentences(dev_text, tokenization), None) is None:
        raise ValueError(f"{', '.join(dev_text)}: found no words to evaluate on")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:  # nothing else: it may be a folder with more in it
        (folder / name).unlink(missing_ok=True)
    writer = CorpusWriter(folder)
    troubles: Counter[str] = Counter()
    chunks = make_chunks(files, share, troubles)
    for words in split_all(tokenization, share, chunks, n_process):
        writer.add(
            words.words, words.streams[0], words.documents[0], words.paragraphs[0], 0
        )
        writer.add(
            words.words, words.streams[1], words.documents[1], words.paragraphs[1], 1
        )
    for words in split_all(
        tokenization, 0.0, make_chunks(dev_files, 0.0, troubles), n_process
    ):
        writer.add(
            words.words, words.streams[0], words.documents[0], words.paragraphs[0], 1
        )
    if share:
        writer.hold_out_one(share)
    meta = writer.finish()
    if not meta["train"]["n_words"]:
        if meta["dev"]["n_words"] and share:  # the only document
            return build_corpus(
                raw_text,
                folder,
                tokenization=tokenization,
                dev_share=0.0,
                n_process=n_process,
            )
        raise ValueError(f"{', '.join(raw_text)}: found no words")
    meta.update(fingerprint=fingerprint, troubles=dict(troubles))
    part = folder / (META + ".part")
    part.write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", "utf8")
    os.replace(part, folder / META)  # says: all is there
    return Corpus(folder), True


def _is_there(folder: Path, fingerprint: str, share: float, *, given: bool) -> bool:
    """Whether a folder holds the whole of a corpus, with what can be held out.

    share (float): Of the documents, held out.
    given (bool): The text held out is a text of its own.
    """
    try:
        meta = json.loads((folder / META).read_text("utf8"))
        same = meta["fingerprint"] == fingerprint
        to_hold_out = given or (share > 0 and meta["train"]["n_documents"] > 1)
        complete = meta["dev"]["n_words"] > 0 or not to_hold_out
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return same and complete and all((folder / name).exists() for name in FILES)


def _fingerprint(
    files: list[Path], dev_files: list[Path], tokenization: Tokenization, share: float
) -> str:
    import spacy

    facts: list[Any] = [VERSION, spacy.__version__, list(tokenization), share]
    for group in (files, dev_files):
        # However a file is called, it is the same one.
        stats = [(str(path.resolve()), path.stat()) for path in group]
        facts.append([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return fingerprint_data(facts)


def tell_troubles(troubles: dict[str, int], tell: Callable[[str], None]) -> None:
    """Say what was wrong with a text, if anything was."""
    found = [
        f"{number:,} {what}" for what, number in sorted(troubles.items()) if number
    ]
    if found:
        tell(f"In the text: {', '.join(found)}")
