"""Raw text in, paragraph by paragraph, whatever state it is in."""

import codecs
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from .text_files import kind_of, open_file

BLOCK = 2**20
MAX_RECORD = 2**26  # bytes of a line of JSON, which is needed as a whole
MAX_PARAGRAPH = 10**5  # characters; what is longer is cut at a space
MAX_RUN = 2000  # characters without a space: tokenizers need the square of their time
LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}")
EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")


class Part(NamedTuple):
    """Some paragraphs, and whether a document ends after them. A document may be as
    long as the corpus, so that it is never needed as a whole."""

    paragraphs: list[str]
    ends: bool


def read_parts(path: Path, troubles: "Counter[str]") -> Iterator[Part]:
    """The paragraphs of a .txt file (one a line, documents parted by empty lines) or
    .jsonl file (a document a line, under "text"), .gz or not.

    troubles (Counter[str]): Where broken input is counted.
    """
    if kind_of(path) == ".jsonl":
        for line, _ in read_lines(path, troubles, MAX_RECORD):
            if line.strip():
                yield from _record(line, troubles)
        return
    ended, cut = True, False
    for line, unfinished in read_lines(path, troubles):
        if line.strip():
            pieces = _pieces(line)
            troubles["lines that were cut"] += len(pieces) > 1 and not cut
            ended, cut = False, unfinished
            yield Part(pieces, False)
        else:
            troubles["empty lines"] += ended
            if not ended:
                yield Part([], True)
            ended = True
    if not ended:
        yield Part([], True)


def has_documents(path: Path) -> bool:
    """Whether a .txt file has an empty line within its first megabyte. One that has
    none is a short document, or a text that does not show where documents end."""
    with open_file(path) as file:
        try:
            return EMPTY_LINE.search(file.read(BLOCK).strip()) is not None
        except (EOFError, OSError, zlib.error):
            return True  # read_lines will say what is wrong


def _record(line: str, troubles: "Counter[str]") -> Iterator[Part]:
    try:
        record: Any = srsly.json_loads(line)
        text = record["text"]
        if not isinstance(text, str):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        troubles["lines that are no JSON with a text"] += 1
        return
    text = _without_nul(text, troubles)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
    paragraphs = [part for part in text.split("\n") if part.strip()]
    pieces = [piece for part in paragraphs for piece in _pieces(part)]
    troubles["lines that were cut"] += len(pieces) > len(paragraphs)
    yield Part(pieces, True)


def read_lines(
    path: Path, troubles: "Counter[str]", limit: int = BLOCK
) -> Iterator[tuple[str, bool]]:
    """YIELDS (tuple[str, bool]): A line without its end, or as much of it as fits into
    about limit bytes, and whether it goes on."""
    pending = b""
    first = True
    with open_file(path) as file:
        while True:
            try:
                block = file.read(BLOCK)
            except (EOFError, OSError, zlib.error):
                troubles["files that break off"] += 1
                block = b""
            if not block:
                break
            if first:
                block, first = block.removeprefix(codecs.BOM_UTF8), False
            *lines, pending = (pending + block).split(b"\n")
            for line in lines:
                yield _decode(line, troubles), False
            # An endless line: most of it now, up to a space, if there is one.
            if len(pending) > limit:
                place = pending.rfind(b" ") + 1 or _whole(pending)
                yield _decode(pending[:place], troubles), True
                pending = pending[place:]
    if pending:
        yield _decode(pending, troubles), False


def _whole(data: bytes) -> int:
    """Where data can be cut without breaking a character, close to its end."""
    for back in (1, 2, 3):
        if data[-back] & 0xC0 != 0x80:  # where a character begins
            return len(data) - back
    return len(data)


def _decode(line: bytes, troubles: "Counter[str]") -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        troubles["lines of broken UTF-8"] += 1
        text = re.sub("\ufffd+", "\ufffd", line.decode("utf-8", "replace"))
    return _without_nul(text, troubles).rstrip("\r")


def _without_nul(text: str, troubles: "Counter[str]") -> str:
    troubles["lines with NUL"] += "\0" in text
    return text.replace("\0", "")


def _pieces(text: str) -> list[str]:
    pieces = []
    while len(text) > MAX_RUN:
        place = min(len(text), MAX_PARAGRAPH)
        if len(text) > MAX_PARAGRAPH:
            place = text.rfind(" ", 1, MAX_PARAGRAPH) + 1 or MAX_PARAGRAPH
        run = LONG_RUN.search(text, 0, place)
        place = run.end() if run else place
        pieces.append(text[:place])
        text = text[place:]
    return [*pieces, text] if text else pieces
