"""Find the files for training, for development and for testing in a folder."""

import re
from pathlib import Path

from .gold_formats import FORMATS
from .line_files import DataError

Splits = dict[str, list[Path]]  # the files of "train", "dev" and "test"

# The name of a file matches one of these patterns, with no letter directly before or
# after the match, as in wnut17train.conll.
PATTERNS = {
    "train": r"train(ing)?",
    "dev": r"dev(el|elopment)?|val(id|idation)?",
    "test": r"test(ing)?",
}


def find_splits(source: Path) -> Splits:
    """Find the files of each split in a folder by their names.

    source (Path): A folder, or a single file, which is then used for training.
    """
    if source.is_file():
        return {"train": [source]}
    if not source.is_dir():
        raise DataError(source, None, "no such file or folder; expected gold data")
    files = [path for path in sorted(source.iterdir()) if path.is_file()]
    known = [path for path in files if path.suffix.lower() in FORMATS]
    if not known:
        suffixes = ", ".join(FORMATS)
        problem = f"found no gold data in this folder; expected files with {suffixes}"
        raise DataError(source, None, problem)
    splits: Splits = {}
    for path in known:
        names = splits_in_name(path.stem)
        if len(names) > 1:
            problem = (
                f"found a name that fits {' and '.join(names)}; expected one of them, "
                f"or --{names[0]} FILE"
            )
            raise DataError(path, None, problem)
        for split in names:
            splits.setdefault(split, []).append(path)
    for split, paths in splits.items():
        if len({path.suffix.lower() for path in paths}) > 1:
            found = ", ".join(path.name for path in paths)
            problem = (
                f"found {split} files of several formats ({found}); expected one "
                f"format, or --{split} FILE"
            )
            raise DataError(source, None, problem)
    return splits


def splits_in_name(stem: str) -> list[str]:
    """Return the splits that a file name without its suffix mentions."""
    return [
        split
        for split, pattern in PATTERNS.items()
        if re.search(rf"(?<![^\W\d_])({pattern})(?![^\W\d_])", stem, re.I)
    ]
