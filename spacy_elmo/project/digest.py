"""A small file that changes when a biLM or a pipeline does. A project knows only paths
as what a command depends on; these may also be named, and "null" is none at all.

Run as `python -m spacy_elmo.project.digest SOURCE OUT`.
"""

import hashlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..bilm.formats.bundled import bundled_names, find_bundled
from ..bilm.formats.hdf5 import find_hdf5

NONE = "null"


def digest_of(path: Path) -> str:
    """RETURNS (str): Of the contents of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    files = (
        [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    )
    for file in files:
        name = file.relative_to(path).as_posix() if file != path else ""
        with file.open("rb") as data:
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            while block := data.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def digests_of(source: str) -> list[str]:
    """source (str): A file or a folder, the name of a bundled biLM or of an installed
        pipeline, or "null".
    RETURNS (list[str]): Of the files; the version of what is installed.
    """
    if source == NONE:
        return []
    path = Path(source)
    if not path.exists():
        path = find_bundled(source) or path
    if path.is_file():  # of a biLM in two files, which are named by either
        return [digest_of(file) for file in find_hdf5(path) or [path]]
    if path.exists():
        return [digest_of(path)]
    try:
        return [version(source)]
    except (PackageNotFoundError, ValueError):
        raise ValueError(
            f"{source}: no such file or folder; expected what an earlier command of "
            f"the project makes, something of your own, or {', '.join(bundled_names())}"
        ) from None


def main(source: str, out: Path) -> None:
    digests = digests_of(source)
    data = {"source": source, "digests": digests}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf8")
    print(f"{source}: {', '.join(digest[:12] for digest in digests) or 'none'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected two arguments: a biLM or a pipeline, and the file to write")
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
