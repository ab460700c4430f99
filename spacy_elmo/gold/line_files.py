"""Read text files line by line, with errors that name the file and the line."""

from collections.abc import Iterator
from pathlib import Path

from ..regular_files import open_regular

MAX_LINE = 2**24  # bytes: far more than any sentence or text has


class DataError(ValueError):
    """An error for data that cannot be used. Its message is one sentence that names
    the file and, if the error is in a single line, the line number."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {problem}")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file, with or without a byte order mark.

    YIELDS (tuple[int, str]): The number of each line, from 1, and its text without the
        line break.
    """
    with open_regular(path) as file:
        lines = iter(lambda: file.readline(MAX_LINE + 1), b"")
        for number, data in enumerate(lines, start=1):
            if len(data) > MAX_LINE:
                problem = f"found a line of more than {MAX_LINE:,} bytes"
                raise DataError(path, number, f"{problem}; expected shorter ones")
            try:
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(path, number, "this is not UTF-8") from None
            yield number, line.rstrip("\r\n")


def read_blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Read groups of lines that are separated by blank lines.

    YIELDS (list[tuple[int, str]]): The line number and the text of each line of a
        group.
    """
    block: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block
