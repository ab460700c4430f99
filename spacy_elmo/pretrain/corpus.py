"""Store tokenized text on disk in the form that training reads: numbers of words."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..files import write_atomically
from ..fingerprints import fingerprint_data
from ..text.chunks import make_chunks
from ..text.problems import Problems
from ..text.sentences import load_sentences
from ..text.text_files import find_files
from ..text.tokenized_chunks import tokenize_chunks
from ..text.tokenizers import Tokenization
from .corpus_writer import COUNTS, DEV, PARTS, VERSION, WORDS, CorpusWriter

META = "corpus.json"
FILES: tuple[str, ...] = (META, WORDS, COUNTS)
FILES += tuple(f"{part}.{end}" for part in PARTS for end in ("tokens", "blocks.npy"))


class Stream(NamedTuple):
    """A text as numbers: one for each word, from 1 on, and 0 before each sentence.

    tokens (np.ndarray): The numbers, int32, (n_tokens,), memory-mapped.
    blocks (np.ndarray): The indices of the tokens that begin a block, (n_blocks,). A
        block is a document, or a part of a long document.
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
    """A corpus on disk.

    folder (Path): The folder in which build_corpus stored the corpus.

    words (list[str]): The distinct words. Word number n is words[n - 1]. The most
        frequent words of the text to train on come first.
    counts (np.ndarray): How often each word occurs in the text to train on, (n_words,).
    train (Stream): The text to train on.
    dev (Stream): The text to evaluate on.
    meta (dict[str, Any]): The numbers of words, sentences and documents in train and
        dev, the problems of the text, and a fingerprint of files and settings.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meta: dict[str, Any] = json.loads((folder / META).read_text("utf8"))
        text = (folder / WORDS).read_bytes().decode("utf8")
        self.words: list[str] = text.split("\n")[:-1]
        self.counts: np.ndarray = np.load(folder / COUNTS)
        self.train = _open_stream(folder, "train")
        self.dev = _open_stream(folder, "dev")

    @property
    def problems(self) -> dict[str, int]:
        """How often each problem was found in the text, by its description."""
        return self.meta.get("problems", {})  # older versions did not store it


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
    """Tokenize a text and store it as a corpus, unless the folder holds it already.

    raw_text (Sequence[str]): Text to train on: files, folders or glob patterns.
    folder (Path): Where the corpus is stored.
    tokenization (Tokenization): How the text is divided into words.
    dev_text (Sequence[str]): Text to evaluate on, in the same forms. If there is none,
        some documents of raw_text are held out.
    dev_share (float): The share of documents to hold out. If there is more than one
        document, at least one is held out.
    n_process (int): Processes that tokenize.
    RETURNS (tuple[Corpus, bool]): The corpus, and whether it had to be written.
    """
    files = find_files(raw_text)
    dev_files = find_files(dev_text)
    share = 0.0 if dev_files else dev_share
    fingerprint = _fingerprint(files, dev_files, tokenization, share)
    if _is_complete(folder, fingerprint, share, given=bool(dev_files)):
        return Corpus(folder), False
    if dev_files and next(load_sentences(dev_text, tokenization), None) is None:
        raise ValueError(f"{', '.join(dev_text)}: found no words to evaluate on")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:  # the folder may hold other files, which are kept
        (folder / name).unlink(missing_ok=True)
    writer = CorpusWriter(folder)
    problems: Problems = Counter()
    chunks = make_chunks(files, share, problems, tokenization.encoding)
    for words in tokenize_chunks(tokenization, share, chunks, n_process):
        for part, stream in enumerate(words.streams):
            writer.add(words.words, stream, part)
    chunks = make_chunks(dev_files, 0.0, problems, tokenization.encoding)
    for words in tokenize_chunks(tokenization, 0.0, chunks, n_process):
        writer.add(words.words, words.streams[0], DEV)
    if share:
        writer.hold_out_one(share)
    meta = writer.finish()
    if not meta["train"]["n_words"]:
        if meta["dev"]["n_words"] and share:  # the only document was held out
            return build_corpus(
                raw_text,
                folder,
                tokenization=tokenization,
                dev_share=0.0,
                n_process=n_process,
            )
        raise ValueError(f"{', '.join(raw_text)}: found no words")
    meta.update(fingerprint=fingerprint, problems=dict(problems))
    text = json.dumps(meta, indent=2, ensure_ascii=False) + "\n"
    # Written last, since this file marks the corpus as complete.
    write_atomically(folder / META, lambda path: path.write_text(text, "utf8"))
    return Corpus(folder), True


def _is_complete(folder: Path, fingerprint: str, share: float, *, given: bool) -> bool:
    """Return whether a folder holds the complete corpus, with text to evaluate on.

    fingerprint (str): The fingerprint that the corpus should have.
    share (float): The share of documents to hold out.
    given (bool): Whether there is a dev_text, so that no documents are held out.
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
        # The same file can be given by different relative paths, so they are resolved.
        stats = [(str(path.resolve()), path.stat()) for path in group]
        facts.append([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return fingerprint_data(facts)
