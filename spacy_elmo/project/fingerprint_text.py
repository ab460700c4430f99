"""Write a small file that changes whenever a text changes (see fingerprint_file.py).

Run as `python -m spacy_elmo.project.fingerprint_text TEXT OUT`.
"""

from hashlib import blake2b
from pathlib import Path

from ..text.text_files import find_files
from .fingerprint_file import run, write_fingerprints

SAMPLE = 2**20  # bytes that are read at the beginning and at the end of a file


def describe(path: Path) -> dict[str, str | int]:
    """Return the name, size and fingerprint of a file. Only its beginning and end are
    read, because a text may have many gigabytes."""
    size = path.stat().st_size
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(SAMPLE))
        file.seek(max(0, size - SAMPLE))
        digest.update(file.read(SAMPLE))
    return {"file": path.as_posix(), "bytes": size, "sample": digest.hexdigest()}


def main(text: str, out: Path) -> None:
    files = [describe(path) for path in find_files([text])]
    write_fingerprints(out, files)
    print(f"{text}: {len(files)} files, {sum(int(f['bytes']) for f in files):,} bytes")


if __name__ == "__main__":
    run(main, "a text")
