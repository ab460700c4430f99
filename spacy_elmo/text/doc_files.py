"""Load and save `.spacy` files: docs as spaCy stores them."""

import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from spacy.attrs import (
    DEP,
    ENT_ID,
    ENT_KB_ID,
    ENT_TYPE,
    LEMMA,
    MORPH,
    NORM,
    ORTH,
    POS,
    TAG,
)
from spacy.parts_of_speech import NAMES
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .text_files import open_file

# Docs are usually about 5 times as large as their file. Identical docs compress better,
# so SMALL bytes are allowed at any ratio.
MAX_RATIO, SMALL = 100, 2**26
BLOCK = 2**20
STRINGS = [TAG, DEP, LEMMA, NORM, MORPH, ENT_TYPE, ENT_ID, ENT_KB_ID]


def load_docs(path: Path, vocab: Vocab) -> list[Doc]:
    """Load all docs of a `.spacy` file, or of one that was compressed (`.spacy.gz`).

    path (Path): The file. If it cannot be read, a ValueError names it.
    vocab (Vocab): The vocab that the docs get.
    RETURNS (list[Doc]): The docs, in the order in which they were saved.
    """
    try:
        limit = max(SMALL, MAX_RATIO * path.stat().st_size)
        with open_file(path) as file:
            data = file.read(limit)
        _check_size(data, limit)
        docs = list(DocBin().from_bytes(data).get_docs(vocab))
        for doc in docs:
            _check_doc(doc)
        return docs
    except Exception as error:  # zlib, msgpack and numpy raise many kinds of errors
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path}: cannot be read as a .spacy file ({reason})"
        ) from None


def _check_size(data: bytes, limit: int) -> None:
    """Raise ValueError if decompressed data would be longer than `limit`. The data is
    decompressed block by block, so that this needs little memory."""
    decoder = zlib.decompressobj()
    size = 0
    while data and not decoder.eof:
        size += len(decoder.decompress(data, BLOCK))
        data = decoder.unconsumed_tail
        if size > limit:
            raise ValueError(f"found more than {limit:,} bytes of docs in a small file")


def _check_doc(doc: Doc) -> None:
    """Raise an error if the file lacks the string of an attribute of the doc, or if a
    part of speech is not one of spaCy's. Using the doc would fail later."""
    array = doc.to_array([ORTH, *STRINGS, POS])
    for number in np.unique(array[:, :-1]):
        doc.vocab.strings[int(number)]
    for number in np.unique(array[:, -1]):
        NAMES[int(number)]
    for group in doc.spans.values():
        for span in group:
            doc.vocab.strings[span.label], doc.vocab.strings[span.kb_id]


def save_docs(docs: Iterable[Doc], path: Path) -> None:
    """Save docs as a `.spacy` file, with their categories, spans and extensions."""
    DocBin(docs=docs, store_user_data=True).to_disk(path)
