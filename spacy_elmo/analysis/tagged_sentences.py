"""Sentences with tags, from CoNLL-U or .spacy files."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, DocBin, Token

COLUMNS = {"pos": 3, "tag": 4, "morph": 5}  # of CoNLL-U
ATTRS = tuple(COLUMNS)
N_COLUMNS = 10


class Tagged(NamedTuple):
    """A sentence: its words and, by attribute, the tag of each, "" where it has none.
    In morphology, "_" is a word without features."""

    words: list[str]
    tags: dict[str, list[str]]


def read_tagged(path: Path, limit: int | None = None) -> Iterator[Tagged]:
    """limit (int | None): Of sentences."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected a CoNLL-U or .spacy file")
    read = _read_spacy if path.suffix == ".spacy" else _read_conllu
    return islice(read(path), limit)


def _read_conllu(path: Path) -> Iterator[Tagged]:
    rows: list[list[str]] = []
    with path.open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                if line.startswith("#"):
                    continue
                if not line.strip():
                    yield from _sentence(rows)
                    rows = []
                    continue
                columns = line.split("\t")
                if len(columns) != N_COLUMNS:
                    raise ValueError(
                        f"{path}: found {len(columns)} columns in line {number}; "
                        f"expected CoNLL-U, with {N_COLUMNS} parted by tabs"
                    )
                # 3-4 is a word of several tokens, 3.1 one that is not in the text.
                if columns[0].isdigit():
                    rows.append(columns)
        except UnicodeDecodeError:
            raise ValueError(f"{path}: found no UTF-8; expected CoNLL-U") from None
    yield from _sentence(rows)


def _sentence(rows: list[list[str]]) -> Iterator[Tagged]:
    if rows:
        tags = {
            attr: [
                "" if row[column] == "_" and attr != "morph" else row[column]
                for row in rows
            ]
            for attr, column in COLUMNS.items()
        }
        yield Tagged([row[1] for row in rows], tags)


def _read_spacy(path: Path) -> Iterator[Tagged]:
    sentencizer = Sentencizer()
    for doc in _read_docs(path):
        attrs = [attr for attr in ATTRS if doc.has_annotation(attr.upper())]
        if not doc.has_annotation("SENT_START"):
            doc = sentencizer(doc)
        for sentence in doc.sents:
            tokens = [token for token in sentence if not token.is_space]
            if tokens:
                words = [token.text for token in tokens]
                yield Tagged(
                    words,
                    {
                        attr: [
                            _tag(token, attr) if attr in attrs else ""
                            for token in tokens
                        ]
                        for attr in ATTRS
                    },
                )


def _read_docs(path: Path) -> Iterator[Doc]:
    try:
        docs = DocBin().from_disk(path)
        yield from docs.get_docs(spacy.blank("xx").vocab)
    except Exception as error:  # of zlib, msgpack, numpy, ...
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path}: cannot be read as a .spacy file ({reason})"
        ) from None


def _tag(token: Token, attr: str) -> str:
    if attr == "morph":
        return str(token.morph) or "_"
    return token.pos_ if attr == "pos" else token.tag_
