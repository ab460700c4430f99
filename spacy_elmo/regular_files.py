"""Find and open files to read them: regular files only, and with a limit to what is
read at once."""

import os
import stat
from pathlib import Path
from typing import IO

MAX_BYTES = 2**28  # of a file that is read as a whole: far more than any needs
MAX_TEXT = 2**24  # of a file that people write
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_regular(path: Path) -> None:
    """Raise ValueError if a path is not a regular file but a folder, or a pipe or
    device, which might have no end. Raise FileNotFoundError if it does not exist."""
    mode = path.stat().st_mode
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise ValueError(f"{path}: found {name}; expected a file")


def find_regular(folder: Path) -> list[Path]:
    """Find the regular files in a folder and its subfolders, except those behind links
    to folders, which may lead back. They are in the order of their paths."""
    found: list[Path] = []
    folders = [folder]  # a loop, because recursion has a limit
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    path = Path(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif path.is_file():
                        found.append(path)
        except PermissionError:
            continue
    return sorted(found)


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to read its bytes; see `check_regular`."""
    check_regular(path)
    return path.open("rb")


def read_text(path: Path) -> str:
    """Read a regular file that people write, such as a config, in UTF-8."""
    return read_regular(path, MAX_TEXT).decode("utf-8-sig")


def read_regular(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a regular file as a whole. Raise ValueError if it is larger than
    `max_bytes`, before memory is allocated."""
    check_regular(path)
    size = path.stat().st_size
    if size > max_bytes:
        raise ValueError(
            f"{path}: found {size:,} bytes; expected a file of at most {max_bytes:,}"
        )
    return path.read_bytes()
