"""Read sentences with tags from CoNLL-U or .spacy files."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.pipeline import Sentencizer
from spacy.tokens import Token

from ..gold.conllu import FEATS, FORM, ID, UPOS, XPOS, read_conllu_rows
from ..text.doc_files import load_docs

COLUMNS = {"pos": UPOS, "tag": XPOS, "morph": FEATS}  # of CoNLL-U
ATTRS = tuple(COLUMNS)


class TaggedSentence(NamedTuple):
    """The words of a sentence and, for each attribute, the tag of each word.

    A tag is "" where the data has none. The morph of a word without features is "_".
    """

    words: list[str]
    tags: dict[str, list[str]]


def read_tagged(path: Path, limit: int | None = None) -> Iterator[TaggedSentence]:
    """Read at most `limit` sentences of a CoNLL-U or .spacy file."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected a CoNLL-U or .spacy file")
    read = _read_spacy if path.suffix == ".spacy" else _read_conllu
    return islice(read(path), limit)


def _read_conllu(path: Path) -> Iterator[TaggedSentence]:
    for rows in read_conllu_rows(path):
        # Skip multiword tokens (3-4) and empty nodes (3.1).
        words = [columns for _, columns in rows if columns[ID].isdecimal()]
        tags = {
            attr: [
                "" if columns[number] == "_" and attr != "morph" else columns[number]
                for columns in words
            ]
            for attr, number in COLUMNS.items()
        }
        if words:
            yield TaggedSentence([columns[FORM] for columns in words], tags)


def _read_spacy(path: Path) -> Iterator[TaggedSentence]:
    sentencizer = Sentencizer()
    for doc in load_docs(path, spacy.blank("xx").vocab):
        attrs = [attr for attr in ATTRS if doc.has_annotation(attr.upper())]
        if not doc.has_annotation("SENT_START"):
            doc = sentencizer(doc)
        for sentence in doc.sents:
            tokens = [token for token in sentence if not token.is_space]
            tags = {
                attr: [
                    _get_tag(token, attr) if attr in attrs else "" for token in tokens
                ]
                for attr in ATTRS
            }
            if tokens:
                yield TaggedSentence([token.text for token in tokens], tags)


def _get_tag(token: Token, attr: str) -> str:
    if attr == "morph":
        return str(token.morph) or "_"
    return token.pos_ if attr == "pos" else token.tag_
