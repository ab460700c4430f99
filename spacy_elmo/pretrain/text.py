"""Raw text in, paragraph by paragraph, whatever state it is in."""

import glob
import gzip
from collections import Counter
from pathlib import Path
from typing import IO, Any, Dict, Iterable, Iterator, List, NamedTuple

import srsly

BLOCK = 2**20
MAX_PARAGRAPH = 10**5  # characters; what is longer is cut at a space
SUFFIXES = (".txt", ".jsonl", ".spacy")


class Part(NamedTuple):
    """Some paragraphs, and whether a document ends after them. A document may be as
    long as the corpus, so that it is never needed as a whole."""

    paragraphs: List[str]
    ends: bool


def find_files(patterns: Iterable[str]) -> List[Path]:
    """Files, folders (all files in them of a known kind) and globs to files, in a fixed
    order.

    RETURNS (List[Path]): Each file once.
    """
    found: Dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            names = sorted(p for p in path.rglob("*") if p.is_file() and is_known(p))
            if not names:
                raise ValueError(
                    f"{pattern}: found no {', '.join(SUFFIXES)} (or .gz) in this folder"
                )
        else:
            names = sorted(map(Path, glob.glob(pattern, recursive=True)))
            names = [path] if path.is_file() else [p for p in names if p.is_file()]
            if not names:
                raise ValueError(
                    f"{pattern}: no such file; expected a file, a folder or a pattern"
                )
        found.update(dict.fromkeys(names))
    return list(found)


def is_known(path: Path) -> bool:
    return kind_of(path) in SUFFIXES


def kind_of(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def read_parts(path: Path, troubles: "Counter[str]") -> Iterator[Part]:
    """The paragraphs of a .txt file (one a line, documents parted by empty lines) or
    .jsonl file (a document a line, under "text"), .gz or not.

    troubles (Counter[str]): Where broken input is counted.
    """
    lines = read_lines(path, troubles)
    if kind_of(path) == ".jsonl":
        for line in lines:
            if line.strip():
                yield from _record(line, troubles)
        return
    ended = True
    for line in lines:
        if line.strip():
            ended = False
            yield Part([line], False)
        else:
            troubles["empty lines"] += ended
            if not ended:
                yield Part([], True)
            ended = True
    if not ended:
        yield Part([], True)


def _record(line: str, troubles: "Counter[str]") -> Iterator[Part]:
    try:
        record: Any = srsly.json_loads(line)
        text = record["text"]
        if not isinstance(text, str):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        troubles["lines that are no JSON with a text"] += 1
        return
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
    paragraphs = [part for part in text.split("\n") if part.strip()]
    cut = [piece for part in paragraphs for piece in _pieces(part, troubles)]
    yield Part(cut, True)


def read_lines(path: Path, troubles: "Counter[str]") -> Iterator[str]:
    """Lines without their ends, cut where they are too long to be held."""
    pending = b""
    cut = False
    with _open(path) as file:
        while True:
            try:
                block = file.read(BLOCK)
            except (EOFError, OSError, gzip.BadGzipFile):
                troubles["files that break off"] += 1
                block = b""
            if not block:
                break
            *lines, pending = (pending + block).split(b"\n")
            for line in lines:
                yield from _decode(line, troubles)
                cut = False
            # An endless line: most of it now, up to a space, if there is one.
            if len(pending) > BLOCK:
                place = pending.rfind(b" ") + 1 or _whole(pending)
                troubles["lines that were cut"] += not cut
                cut = True
                yield from _decode(pending[:place], troubles)
                pending = pending[place:]
    if pending:
        yield from _decode(pending, troubles)


def _whole(data: bytes) -> int:
    """Where data can be cut without breaking a character."""
    place = len(data)
    while place > 1 and data[place - 1] & 0xC0 == 0x80:
        place -= 1
    return max(1, place - 1)


def _decode(line: bytes, troubles: "Counter[str]") -> Iterator[str]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        troubles["lines of broken UTF-8"] += 1
        text = line.decode("utf-8", "replace")
    if "\0" in text:
        troubles["lines with NUL"] += 1
        text = text.replace("\0", "")
    yield from _pieces(text.rstrip("\r"), troubles)


def _pieces(text: str, troubles: "Counter[str]") -> Iterator[str]:
    if len(text) <= MAX_PARAGRAPH:
        yield text
        return
    troubles["lines that were cut"] += 1
    while text:
        place = len(text)
        if place > MAX_PARAGRAPH:
            place = text.rfind(" ", 1, MAX_PARAGRAPH) + 1 or MAX_PARAGRAPH
        yield text[:place]
        text = text[place:]


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")
