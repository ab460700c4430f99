"""Load the paragraphs of text files. Damaged text is repaired or left out, and each
problem is counted."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .encodings import is_utf8, make_recoder
from .json_lines import parse_json
from .line_check import LineCheck
from .parquet_texts import load_parquet_texts
from .problems import Problems
from .text_files import kind_of, open_file

BLOCK = 2**20  # bytes that are read at a time
# The most bytes of a line of JSON, which cannot be parsed in parts. Books have less,
# and parsed lines can need 25 times as much memory.
MAX_RECORD = 2**23
MAX_PARAGRAPH = 10**5  # characters; longer paragraphs are cut at a space
# The most characters without a space. Longer runs are cut, because the time that a
# tokenizer needs for a run grows with the square of its length.
MAX_RUN = 2000
LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}")
RECORDS = (".jsonl", ".parquet")  # files in which a record is a document
EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")


class Part(NamedTuple):
    """A part of a document. Documents are loaded in parts, because one document can be
    as long as the whole text.

    paragraphs (list[str]): The paragraphs of this part.
    ends_document (bool): Whether the document ends after this part.
    """

    paragraphs: list[str]
    ends_document: bool


def load_paragraphs(path: Path, problems: Problems, check: LineCheck) -> Iterator[Part]:
    """Load the paragraphs of a file, which may be compressed (.gz).

    path (Path): A .txt file (one paragraph per line, an empty line after each
        document), a .jsonl file (one document per line, under the key "text") or a
        .parquet file (one document per row, in the column "text").
    problems (Problems): Counts the problems that are found.
    check (LineCheck): Knows the encoding, and stops at too many broken lines.
    YIELDS (Part): The parts of all documents, in order.
    """
    if kind_of(path) in RECORDS:
        for text in load_records(path, problems, check):
            yield _divide_record(text, problems)
        return
    ended, cut = True, False
    for line, unfinished in _read_lines(path, problems, check):
        if line.strip():
            pieces = _cut(line)
            problems["lines that were too long and were cut"] += (
                len(pieces) > 1 and not cut
            )
            ended, cut = False, unfinished
            yield Part(pieces, False)
        else:
            problems["superfluous empty lines"] += ended
            if not ended:
                yield Part([], True)
            ended = True
    check.check_file(path)
    if not ended:
        yield Part([], True)


def has_documents(path: Path, encoding: str) -> bool:
    """Return whether a .txt file has an empty line within its first megabyte. If it has
    none, it is a single document, or it does not show where documents end."""
    try:
        block = next(_read_bytes(path, Counter()))
        if not is_utf8(encoding):
            block = make_recoder(encoding)(block)
    except ValueError:
        return True  # it is raised again when the file is loaded
    return EMPTY_LINE.search(block.strip()) is not None


def load_records(path: Path, problems: Problems, check: LineCheck) -> Iterator[str]:
    """Load the texts of a file whose records are documents; see `load_paragraphs`."""
    if kind_of(path) == ".parquet":
        texts = load_parquet_texts(path, problems)
    else:
        texts = _load_json_texts(path, problems, check)
    for text in texts:
        text = _without_nul(text, problems)
        if not text.isascii():
            # Lone surrogates become question marks.
            text = text.encode("utf-8", "replace").decode("utf-8")
        yield text


def _load_json_texts(path: Path, problems: Problems, check: LineCheck) -> Iterator[str]:
    """Load what lines of JSON have under the key "text"."""
    for line, unfinished in _read_lines(path, problems, check, MAX_RECORD):
        if not line.strip():
            continue
        try:
            text = None if unfinished else parse_json(line)["text"]
            if not isinstance(text, str):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            problems['lines that are not JSON with a "text"'] += 1
            check.mark_broken()
            continue
        yield text
    check.check_file(path)


def _divide_record(text: str, problems: Problems) -> Part:
    """Divide a document into paragraphs."""
    paragraphs = [part for part in text.split("\n") if part.strip()]
    pieces = [piece for part in paragraphs for piece in _cut(part)]
    problems["lines that were too long and were cut"] += len(pieces) > len(paragraphs)
    return Part(pieces, True)


def _read_lines(
    path: Path, problems: Problems, check: LineCheck, limit: int = BLOCK
) -> Iterator[tuple[str, bool]]:
    """Read a file line by line.

    limit (int): About the most bytes of a line that are returned at a time.
    YIELDS (tuple[str, bool]): A line without its line end, or a part of a long line,
        and whether more of that line follows.
    """
    pending = b""
    check.begin_file()
    for block in _read_blocks(path, problems, check.encoding):
        if block:  # at the end of the file, the caller checks, after the last line
            check.check_file(path)
        *lines, pending = (pending + block).split(b"\n")
        for line in lines:
            yield _decode(line, problems, check), False
        # Return the beginning of a long line now, up to a space if there is one.
        if len(pending) > limit:
            end = pending.rfind(b" ") + 1 or _last_character(pending)
            yield _decode(pending[:end], problems, check), True
            pending = pending[end:]
    if pending:
        yield _decode(pending, problems, check), False


def _read_blocks(path: Path, problems: Problems, encoding: str) -> Iterator[bytes]:
    """Read a file block by block, as UTF-8."""
    recode = (lambda block: block) if is_utf8(encoding) else make_recoder(encoding)
    for block in _read_bytes(path, problems):
        try:
            yield recode(block)
        except UnicodeError as error:  # no byte order mark
            raise ValueError(f"{path}: not in {encoding} ({error})") from None


def _read_bytes(path: Path, problems: Problems) -> Iterator[bytes]:
    """Read a file block by block, up to its end or to where it is damaged. The last
    block is empty."""
    block, begun, damaged = b" ", False, False
    with open_file(path) as file:
        while block:
            pieces: list[bytes] = []
            left = 0 if damaged else BLOCK
            try:
                # `read` would lose what can be read before the damage.
                while left and (piece := file.read1(left)):
                    pieces.append(piece)
                    left -= len(piece)
                    begun = True
            except (EOFError, OSError, zlib.error) as error:
                if isinstance(error, gzip.BadGzipFile) and not begun:
                    raise ValueError(
                        f"{path}: found no gzip file ({error}); expected compressed "
                        "text, or a name without .gz"
                    ) from None
                problems["files that end too early"] += 1
                damaged = True
            block = b"".join(pieces)
            yield block


def _last_character(data: bytes) -> int:
    """Return the index of the byte that begins the last character. Data can be cut
    there."""
    for back in (1, 2, 3):
        if data[-back] & 0xC0 != 0x80:  # not a continuation byte of UTF-8
            return len(data) - back
    return len(data)


def _decode(line: bytes, problems: Problems, check: LineCheck) -> str:
    """Decode a line, which is UTF-8 by now."""
    if line:
        check.begin_line()
    try:
        text = line.decode("utf-8")
        # In other encodings, invalid bytes have become U+FFFD by now.
        is_valid = "\ufffd" not in text or is_utf8(check.encoding)
    except UnicodeDecodeError:
        text = re.sub("\ufffd+", "\ufffd", line.decode("utf-8", "replace"))
        is_valid = False
    if not is_valid:
        problems[f"lines with invalid {check.encoding.upper()}"] += 1
    if not is_valid or "\0" in text:
        check.mark_broken()
    # Files that were joined have a byte order mark at the beginning of each.
    text = _without_nul(text, problems).removeprefix("\ufeff").rstrip("\r")
    problems["lines with a carriage return inside"] += "\r" in text
    return text


def _without_nul(text: str, problems: Problems) -> str:
    problems["lines with NUL characters"] += "\0" in text
    return text.replace("\0", "")


def _cut(text: str) -> list[str]:
    """Cut a paragraph into pieces of at most MAX_PARAGRAPH characters, in which no run
    of characters without a space is longer than MAX_RUN."""
    pieces = []
    while len(text) > MAX_RUN:
        end = min(len(text), MAX_PARAGRAPH)
        if len(text) > MAX_PARAGRAPH:
            end = text.rfind(" ", 1, MAX_PARAGRAPH) + 1 or MAX_PARAGRAPH
        run = LONG_RUN.search(text, 0, end)
        end = run.end() if run else end
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text] if text else pieces
