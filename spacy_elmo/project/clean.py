"""Remove files, and folders with everything in them. Those that do not exist are
skipped.

Run as `python -m spacy_elmo.project.clean PATH...`.
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path


def main(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)
        else:
            continue
        print(f"Removed {path}")


if __name__ == "__main__":
    try:
        main(map(Path, sys.argv[1:]))
    except OSError as error:
        sys.exit(str(error))
