"""Remove folders and everything in them. Folders that do not exist are skipped.

Run as `python -m spacy_elmo.project.clean FOLDER...`.
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path


def main(folders: Iterable[Path]) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)
            print(f"Removed {folder}")


if __name__ == "__main__":
    try:
        main(map(Path, sys.argv[1:]))
    except OSError as error:
        sys.exit(str(error))
