"""Count the lines of a text that cannot be read, and stop if there are too many."""

import zlib
from pathlib import Path

from .encodings import CANDIDATES, SAMPLE, UTF8, guess_encoding, is_binary
from .text_files import open_file

MAX_BROKEN = 0.1  # share of the lines
# A file with fewer lines is judged together with the other files.
ENOUGH_LINES = 100


class LineCheck:
    """Counts the lines of files, and those among them that are broken: not in the
    encoding of the text, with NUL characters, or not JSON.

    encoding (str): The encoding of the text.
    """

    def __init__(self, encoding: str = UTF8) -> None:
        self.encoding = encoding
        self._n_lines = self._n_broken = 0  # of all files
        self._in_file = (0, 0)  # both numbers, when the current file began
        self._worst: tuple[int, int, Path] | None = None  # broken, lines, file
        self._is_broken = False

    def begin_file(self) -> None:
        self._in_file = (self._n_lines, self._n_broken)

    def begin_line(self) -> None:
        self._n_lines += 1
        self._is_broken = False

    def mark_broken(self) -> None:
        """Count the current line as broken; it may be called twice for a line."""
        self._n_broken += not self._is_broken
        self._is_broken = True

    def check_file(self, path: Path) -> None:
        """Raise ValueError if the current file has too many broken lines so far."""
        n_lines = self._n_lines - self._in_file[0]
        n_broken = self._n_broken - self._in_file[1]
        if self._worst is None or n_broken > self._worst[0]:
            self._worst = (n_broken, n_lines, path)
        if n_lines >= ENOUGH_LINES and n_broken > MAX_BROKEN * n_lines:
            raise ValueError(_describe(path, n_broken, n_lines, self.encoding))

    def check_all(self) -> None:
        """Raise ValueError if all files together have too many broken lines."""
        if self._n_broken > MAX_BROKEN * self._n_lines and self._worst is not None:
            n_broken, n_lines, path = self._worst
            raise ValueError(_describe(path, n_broken, n_lines, self.encoding))


def _describe(path: Path, n_broken: int, n_lines: int, encoding: str) -> str:
    """Return a sentence about a file with too many broken lines, which names the
    encoding that would fit."""
    lines = "line" if n_broken == 1 else "lines"
    found = f"{path}: found {n_broken:,} broken {lines} among {n_lines:,}"
    try:
        with open_file(path) as file:
            data = file.read(SAMPLE)
    except (EOFError, OSError, zlib.error):
        data = b""
    if _fits(data, encoding):
        return f'{found}; expected lines of text, or of JSON with a "text" in .jsonl'
    setting = "as corpus.encoding in a config or as --encoding"
    guess = UTF8 if _fits(data, UTF8) else guess_encoding(data)
    if guess is not None:
        return (
            f"{found} if it is read as {encoding}; give {guess}, which fits, {setting}"
        )
    if is_binary(data):
        return (
            f"{found}, and no encoding fits, so this is not text; expected lines of "
            "text, such as a .txt file of UTF-8"
        )
    tried = ", ".join([UTF8, *CANDIDATES])
    return f"{found} and no fitting encoding among {tried}; give its encoding {setting}"


def _fits(data: bytes, encoding: str) -> bool:
    """Return whether almost all of the data is valid."""
    text = data.decode(encoding, "ignore")
    valid = text.replace("\0", "").encode(encoding, "ignore")
    return len(valid) >= 0.99 * len(data)
