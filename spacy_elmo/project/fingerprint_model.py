"""Write a small file that changes whenever a biLM or a pipeline changes (see
fingerprint_file.py).

Run as `python -m spacy_elmo.project.fingerprint_model SOURCE OUT`.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..bilm.formats.bundled import bundled_names, find_bundled
from ..bilm.formats.hdf5 import find_hdf5
from ..fingerprints import fingerprint_path
from .fingerprint_file import run, write_fingerprints

NONE = "null"  # the value of an unused variable in project.yml


def fingerprint_model(source: str) -> list[str]:
    """Return the fingerprints of a model's files, or the version of an installed
    pipeline.

    source (str): A file or folder, the name of a bundled biLM or of an installed
        pipeline, or "null" for none.
    """
    if source == NONE:
        return []
    path = Path(source)
    if not path.exists():
        path = find_bundled(source) or path
    if path.is_file():
        # A biLM in HDF5 has two files, and the path may lead to either of them.
        return [fingerprint_path(file) for file in find_hdf5(path) or [path]]
    if path.exists():
        return [fingerprint_path(path)]
    try:
        return [version(source)]
    except (PackageNotFoundError, ValueError):
        raise ValueError(
            f"{source}: no such file or folder; expected the output of an earlier "
            "command of the project, a model of yours, or a bundled biLM "
            f"({', '.join(bundled_names())})"
        ) from None


def main(source: str, out: Path) -> None:
    fingerprints = fingerprint_model(source)
    write_fingerprints(out, {"source": source, "fingerprints": fingerprints})
    short = [fingerprint[:12] for fingerprint in fingerprints]
    print(f"{source}: {', '.join(short) or 'none'}")


if __name__ == "__main__":
    run(main, "a biLM or a pipeline")
