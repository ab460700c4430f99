"""A small file that changes when a biLM or a pipeline does. A project knows only paths
as what a command depends on; these may also be named, and "null" is none at all.

Run as `python -m spacy_elmo.project.fingerprint_model SOURCE OUT`.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..bilm.formats.bundled import bundled_names, find_bundled
from ..bilm.formats.hdf5 import find_hdf5
from ..fingerprints import fingerprint_path

NONE = "null"


def fingerprints_of(source: str) -> list[str]:
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
        return [fingerprint_path(file) for file in find_hdf5(path) or [path]]
    if path.exists():
        return [fingerprint_path(path)]
    try:
        return [version(source)]
    except (PackageNotFoundError, ValueError):
        raise ValueError(
            f"{source}: no such file or folder; expected what an earlier command of "
            f"the project makes, something of your own, or {', '.join(bundled_names())}"
        ) from None


def main(source: str, out: Path) -> None:
    fingerprints = fingerprints_of(source)
    data = {"source": source, "fingerprints": fingerprints}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf8")
    short = [fingerprint[:12] for fingerprint in fingerprints]
    print(f"{source}: {', '.join(short) or 'none'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected two arguments: a biLM or a pipeline, and the file to write")
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))
