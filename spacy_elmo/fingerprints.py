"""Compute fingerprints of data and files. Equal contents have equal fingerprints,
wherever they are stored."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

BLOCK = 2**20
SIZE = 16  # bytes


def fingerprint_data(data: Any) -> str:
    """Fingerprint anything that JSON can hold; the order of keys does not matter."""
    text = json.dumps(data, sort_keys=True)
    return blake2b(text.encode(), digest_size=SIZE).hexdigest()


def fingerprint_files(files: Iterable[tuple[str, Path]]) -> str:
    """Fingerprint the contents of files, in the given order.

    files (Iterable[tuple[str, Path]]): A label and the path of each file. The label,
        such as a relative path, is part of the fingerprint; the path is not.
    """
    digest = blake2b(digest_size=SIZE)
    for label, path in files:
        digest.update(f"{label}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def fingerprint_path(path: Path) -> str:
    """Fingerprint a file, or all files of a folder and their paths relative to it."""
    if path.is_file():
        return fingerprint_files([("", path)])
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return fingerprint_files(
        (file.relative_to(path).as_posix(), file) for file in found
    )
