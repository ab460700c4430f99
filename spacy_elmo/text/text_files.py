"""Find and open text files, compressed or not."""

import glob
import gzip
from collections.abc import Iterable
from io import BufferedIOBase
from pathlib import Path

from ..regular_files import check_regular, find_regular

SUFFIXES = (".txt", ".jsonl", ".parquet", ".spacy")


def find_files(patterns: Iterable[str]) -> list[Path]:
    """Find text files.

    patterns (Iterable[str]): Names of files, of folders (which stand for all files in
        them that have a known suffix), or glob patterns.
    RETURNS (list[Path]): Each file once, in an order that is always the same.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        if not pattern:  # Path("") would be the current folder
            raise ValueError(
                "found an empty name; expected a file, a folder or a pattern"
            )
        path = Path(pattern)
        if path.is_dir():
            files = [p for p in find_regular(path) if is_known(p)]
            if not files:
                raise ValueError(
                    f"{pattern}: found no {', '.join(SUFFIXES)} (or .gz) in this folder"
                )
        elif path.is_file():
            files = [path]
        else:
            matches = map(Path, glob.glob(pattern, recursive=True))
            files = sorted(p for p in matches if p.is_file())
            if not files:
                if path.exists():
                    check_regular(path)
                raise ValueError(
                    f"{pattern}: no such file; expected a file, a folder or a pattern"
                )
        found.update(dict.fromkeys(files))
    return list(found)


def is_known(path: Path) -> bool:
    """Return whether a file has a known suffix, such as .txt or .txt.gz."""
    return kind_of(path) in SUFFIXES


def kind_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without `.gz`."""
    uncompressed = path.with_suffix("") if is_gzipped(path) else path
    return uncompressed.suffix.lower()


def is_gzipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def open_file(path: Path) -> BufferedIOBase:
    """Open a file to read its bytes, which are decompressed if it is a .gz file."""
    check_regular(path)
    if is_gzipped(path):
        return gzip.open(path, "rb")
    return path.open("rb")
