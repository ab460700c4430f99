"""A small file that changes when a text does. A project hashes what a command depends
on as a whole and in memory, which is not for texts of many gigabytes, and knows no
patterns.

Run as `python -m spacy_elmo.project.fingerprint_text TEXT OUT`.
"""

import json
import sys
from hashlib import blake2b
from pathlib import Path

from ..text.text_files import find_files

SAMPLE = 2**20  # bytes of the begin and of the end


def describe(path: Path) -> dict[str, str | int]:
    size = path.stat().st_size
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(SAMPLE))
        file.seek(max(0, size - SAMPLE))
        digest.update(file.read(SAMPLE))
    return {"file": path.as_posix(), "bytes": size, "sample": digest.hexdigest()}


def main(text: str, out: Path) -> None:
    files = [describe(path) for path in find_files([text])]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(files, indent=2, ensure_ascii=False) + "\n", "utf8")
    print(f"{text}: {len(files)} files, {sum(int(f['bytes']) for f in files):,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected two arguments: a text, and the file to write")
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
