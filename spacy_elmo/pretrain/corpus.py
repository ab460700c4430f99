"""Store tokenized text on disk in the form that training reads: numbers of words."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np

from ..bilm.config import shorten
from ..files import explain_errors, one_writer, part_path, sync, write_atomically
from ..fingerprints import checksum_file, fingerprint_data, has_checksum
from ..regular_files import read_regular
from ..text.problems import Problems
from ..text.sentences import load_sentences
from ..text.text_files import find_files
from ..text.tokenizers import Tokenization
from .corpus_writer import COUNTS, PARTS, VERSION, WORDS
from .processes import Processes
from .text_to_prepare import TextToPrepare

META = "corpus.json"
CHECKSUMS, CHECKSUM = "checksums", "checksum"  # of the other files, and of META
FILES: tuple[str, ...] = (META, WORDS, COUNTS)
FILES += tuple(f"{part}.{end}" for part in PARTS for end in ("tokens", "blocks.npy"))
ALONE = Processes()


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


class CorpusError(ValueError):
    """Raised when the files of a corpus are missing or damaged."""


class Corpus:
    """A corpus on disk. Raises CorpusError if its files are not as they were written.

    folder (Path): The folder in which build_corpus stored the corpus.
    check (bool): Whether to read all files and compare their checksums.

    words (list[str]): The distinct words. Word number n is words[n - 1]. The most
        frequent words of the text to train on come first.
    counts (np.ndarray): How often each word occurs in the text to train on, (n_words,).
    train (Stream): The text to train on.
    dev (Stream): The text to evaluate on.
    meta (dict[str, Any]): The numbers of words, sentences and documents in train and
        dev, the problems of the text, a fingerprint of files and settings, and the
        checksums of the files.
    """

    def __init__(self, folder: Path, *, check: bool = True) -> None:
        self.folder = folder
        self.meta = _load_meta(folder / META)
        try:
            if check:
                self._check_checksums()
            text = (folder / WORDS).read_bytes().decode("utf8")
            self.words: list[str] = text.split("\n")[:-1]
            self.counts = _load_array(folder / COUNTS)
            self.train = _open_stream(folder, "train")
            self.dev = _open_stream(folder, "dev")
        except FileNotFoundError as error:
            raise CorpusError(f"{error.filename}: no such file") from None
        except UnicodeDecodeError:
            raise CorpusError(f"{folder / WORDS}: found invalid UTF-8") from None
        self._check_numbers()

    def _check_checksums(self) -> None:
        for name in FILES:
            if name != META and not has_checksum(
                self.folder / name, self.meta[CHECKSUMS].get(name)
            ):
                raise CorpusError(f"{self.folder / name}: the checksum does not match")

    def _check_numbers(self) -> None:
        """Raise CorpusError if files do not fit each other."""
        n_words = len(self.words)
        if self.counts.shape != (n_words,) or (self.counts < 0).any():
            raise CorpusError(
                f"{self.folder / COUNTS}: found {self.counts.shape} numbers; expected "
                f"one for each of {n_words} words, none below 0"
            )
        for part in PARTS:
            tokens, blocks = getattr(self, part)
            if len(tokens) and not 0 <= tokens.min() <= tokens.max() <= n_words:
                raise CorpusError(
                    f"{self.folder / part}.tokens: found the numbers {tokens.min()} to "
                    f"{tokens.max()}; expected 0 to {n_words}"
                )
            limits = np.concatenate([[-1], blocks, [len(tokens)]])
            if (np.diff(limits) <= 0).any() or (len(tokens) and blocks[:1] != [0]):
                raise CorpusError(
                    f"{self.folder / part}.blocks.npy: found blocks that are not in "
                    f"order; expected starts from 0 to {len(tokens) - 1}"
                )

    @property
    def problems(self) -> dict[str, int]:
        """Return how often each problem was found in the text, by its description."""
        return self.meta["problems"]


def _load_meta(path: Path) -> dict[str, Any]:
    """Load the facts about a corpus. Raise CorpusError if they are damaged."""
    try:
        meta = json.loads(read_regular(path))
    except (ValueError, RecursionError):
        raise CorpusError(f"{path}: found no valid JSON") from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(meta, dict) or meta.pop(CHECKSUM, None) != fingerprint_data(meta):
        raise CorpusError(f"{path}: the checksum does not match")
    for name in (*PARTS, CHECKSUMS, "problems"):
        if not isinstance(meta.get(name), dict):
            raise CorpusError(f"{path}: found no section '{name}'")
    for name, value in _list_counts(meta).items():
        if type(value) is not int or value < 0:
            raise CorpusError(
                f"{path}: found {name} = {shorten(value)}; expected a count"
            )
    return meta


def _list_counts(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that should be counts, by their dotted names."""
    problems = {f"problems.{name}": count for name, count in meta["problems"].items()}
    sizes = {
        f"{part}.{name}": meta[part].get(name)
        for part in PARTS
        for name in ("n_words", "n_sentences", "n_documents")
    }
    return {"n_distinct": meta.get("n_distinct"), **sizes, **problems}


def _load_array(path: Path) -> np.ndarray:
    """Load numbers. Raise CorpusError if they are not a row of integers."""
    try:
        array = np.load(path)
    except (ValueError, EOFError, SyntaxError, TokenError, MemoryError, ImportError):
        raise CorpusError(f"{path}: found no NumPy array") from None
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != "i":
        raise CorpusError(f"{path}: found something other than a row of integers")
    return array


def _open_stream(folder: Path, part: str) -> Stream:
    path = folder / f"{part}.tokens"
    tokens = np.zeros(0, dtype="<i4")
    size = os.path.getsize(path)
    if size % tokens.itemsize:
        raise CorpusError(f"{path}: found {size} bytes; expected a multiple of 4")
    if size:
        tokens = np.memmap(path, dtype="<i4", mode="r")
    return Stream(tokens, _load_array(folder / f"{part}.blocks.npy"))


def build_corpus(
    raw_text: Sequence[str],
    folder: Path,
    *,
    tokenization: Tokenization,
    dev_text: Sequence[str] = (),
    dev_share: float = 0.01,
    n_process: int = 1,
    ranks: Processes = ALONE,
    say: Callable[[str], None] = print,
) -> tuple[Corpus, bool]:
    """Tokenize a text and store it as a corpus, unless the folder holds it already.

    raw_text (Sequence[str]): Text to train on: files, folders or glob patterns.
    folder (Path): Where the corpus is stored.
    tokenization (Tokenization): How the text is divided into words.
    dev_text (Sequence[str]): Text to evaluate on, in the same forms. If there is none,
        some documents of raw_text are held out.
    dev_share (float): The share of documents to hold out. If there is more than one
        document, at least one is held out.
    n_process (int): Processes that tokenize, for each of `ranks`.
    ranks (Processes): The processes that call this together, and share the work.
    say (Callable[[str], None]): Called with a sentence if the corpus is damaged.
    RETURNS (tuple[Corpus, bool]): The corpus, and whether it had to be written.
    """
    files = find_files(raw_text)
    dev_files = find_files(dev_text)
    share = 0.0 if dev_files else dev_share
    text = TextToPrepare((files, dev_files), tokenization, n_process)
    fingerprint = _fingerprint(files, dev_files, tokenization, share)
    to_hold_out = "all" if dev_files else "some" if share else "none"
    corpus = part = None
    with ExitStack() as stack:
        with ranks.together():
            if ranks.first:
                _check_target(folder)
                corpus = _open_complete(folder, fingerprint, to_hold_out, say)
            if ranks.first and corpus is None:
                if dev_files and next(load_sentences(dev_text, tokenization), 0) == 0:
                    raise ValueError(
                        f"{', '.join(dev_text)}: found no words to evaluate on"
                    )
                part = stack.enter_context(_new_part(folder))
        shared = ranks.gather_texts("" if part is None else str(part))[0]
        problems: Problems = Counter()
        if shared and ranks.size > 1:
            text.tokenize_together(Path(shared), share, ranks, problems)
        with ranks.together():
            if part is not None:
                meta = text.write(part, share, ranks, problems)
                if not meta["train"]["n_words"]:
                    raise ValueError(f"{', '.join(raw_text)}: found no words")
                _move_files(part, folder, {**meta, "fingerprint": fingerprint})
    with ranks.together():
        corpus = corpus or Corpus(folder, check=ranks.first)
    return corpus, bool(shared)


def _check_target(folder: Path) -> None:
    """Raise ValueError if the folder has files that would be replaced and that are not
    those of a corpus, complete or damaged."""
    found = [name for name in FILES if os.path.lexists(folder / name)]
    try:
        meta = json.loads(read_regular(folder / META))
    except (OSError, ValueError, RecursionError):
        meta = None
    is_ours = isinstance(meta, dict) and {"version", "fingerprint"} <= {*meta}
    has_all_others = {*found} >= {*FILES} - {META}  # so META is missing or damaged
    if found and not is_ours and not has_all_others:
        raise ValueError(
            f"{folder}: found {', '.join(found)}, which no pretraining has written and "
            "which would be replaced; move them away, or choose another folder"
        )


@contextmanager
def _new_part(folder: Path) -> Iterator[Path]:
    """Make a temporary folder for the files of a corpus, while no other process writes
    to the folder of the corpus."""
    with explain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with one_writer(folder):
            part = part_path(folder / "corpus")
            part.mkdir()
            try:
                yield part
            finally:
                shutil.rmtree(part, ignore_errors=True)


def _move_files(part: Path, folder: Path, meta: dict[str, Any]) -> None:
    """Move the files of a new corpus to its folder, which may hold an earlier corpus,
    and other files, which are kept."""
    # Without checksums, there is no corpus, but the files can be replaced.
    _write_meta(folder, meta)
    meta[CHECKSUMS] = {}
    for name in FILES:
        if name != META:
            meta[CHECKSUMS][name] = checksum_file(part / name)
            sync(part / name)
            os.replace(part / name, folder / name)
    sync(folder)
    # Written last, since this file marks the corpus as complete.
    _write_meta(folder, {**meta, CHECKSUM: fingerprint_data(meta)})


def _write_meta(folder: Path, meta: dict[str, Any]) -> None:
    text = json.dumps(meta, indent=2, ensure_ascii=False) + "\n"
    write_atomically(folder / META, lambda path: path.write_text(text, "utf8"))


def _open_complete(
    folder: Path, fingerprint: str, to_hold_out: str, say: Callable[[str], None]
) -> Corpus | None:
    """Open the corpus of a folder, if it is the right one and has text to evaluate on.

    fingerprint (str): The fingerprint that the corpus should have.
    to_hold_out (str): What the corpus is evaluated on: "all" documents of a separate
        text, "some" documents of the same text, or "none".
    say (Callable[[str], None]): Called with a sentence if the corpus is damaged.
    """
    try:
        if not (folder / META).exists():
            return None
        if _load_meta(folder / META).get("fingerprint") != fingerprint:
            return None
        corpus = Corpus(folder)
    except CorpusError as error:
        say(f"{error}; preparing the text again")
        return None
    to_evaluate = len(corpus.dev.tokens) or to_hold_out == "none"
    single = to_hold_out == "some" and corpus.meta["train"]["n_documents"] < 2
    return corpus if to_evaluate or single else None


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
