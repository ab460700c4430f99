"""Which files of a folder are for training, development and test."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, DocBin

from .conll_ner import read_tagged
from .conllu import read_conllu
from .conversion import DataError, Reading
from .jsonl import read_jsonl

Parts = dict[str, list[Path]]


class Format(NamedTuple):
    """read: A file to docs. sentences (int | None): If these are sentences, how many
    make a doc to train on by default. Where sentences begin is learned from several in
    a row, but lines of tags are often of texts that have nothing to do with each other.
    raw (bool): Whether it needs a tokenizer."""

    read: Callable[[Path, Reading], Iterator[Doc]]
    sentences: int | None = None
    raw: bool = False


def read_spacy(path: Path, reading: Reading) -> Iterator[Doc]:
    try:
        docs = list(DocBin().from_disk(path).get_docs(reading.nlp.vocab))
    except Exception as error:  # of zlib, msgpack, numpy, ...
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        raise DataError(path, None, f"this is not a .spacy file ({reason})") from None
    for doc in docs:
        if reading.spans_key is not None and doc.has_annotation("ENT_IOB"):
            doc.spans[reading.spans_key] = list(doc.ents)
        yield doc


TAGGED = Format(read_tagged, sentences=1)
FORMATS = {
    ".conllu": Format(read_conllu, sentences=10),
    ".conll": TAGGED,
    ".iob": TAGGED,
    ".bio": TAGGED,
    ".tsv": TAGGED,
    ".jsonl": Format(read_jsonl, raw=True),
    ".spacy": Format(read_spacy),
}
# In a name these stand between anything but letters, as in wnut17train.conll.
NAMES = {
    "train": r"train(ing)?",
    "dev": r"dev(el|elopment)?|val(id|idation)?",
    "test": r"test(ing)?",
}


def format_of(path: Path) -> Format:
    if path.suffix.lower() not in FORMATS:
        known = ", ".join(FORMATS)
        raise DataError(path, None, f"unknown kind of file; expected one of {known}")
    return FORMATS[path.suffix.lower()]


def find_parts(source: Path) -> Parts:
    """RETURNS (Parts): Files by "train", "dev" and "test". A source that is a file is
    for training."""
    if source.is_file():
        return {"train": [source]}
    if not source.is_dir():
        raise DataError(source, None, "no such file or folder")
    files = [path for path in sorted(source.iterdir()) if path.is_file()]
    known = [path for path in files if path.suffix.lower() in FORMATS]
    if not known:
        kinds = ", ".join(FORMATS)
        what = f"found no gold data in this folder; expected files of {kinds}"
        raise DataError(source, None, what)
    parts: Parts = {}
    for path in known:
        names = parts_in_name(path.stem)
        if len(names) > 1:
            what = f"is this for {' or '.join(names)}? Use --{names[0]} FILE"
            raise DataError(path, None, what)
        for part in names:
            parts.setdefault(part, []).append(path)
    for part, paths in parts.items():
        if len({path.suffix.lower() for path in paths}) > 1:
            found = ", ".join(path.name for path in paths)
            what = f"found several kinds of {part} files ({found}); use --{part} FILE"
            raise DataError(source, None, what)
    return parts


def parts_in_name(stem: str) -> list[str]:
    return [
        part
        for part, pattern in NAMES.items()
        if re.search(rf"(?<![^\W\d_])({pattern})(?![^\W\d_])", stem, re.I)
    ]
