"""The formats of gold data. The suffix of a file determines its format."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc

from ..text.doc_files import load_docs
from .conll_ner import read_conll_ner
from .conllu import read_conllu
from .conversion import Conversion
from .jsonl import read_jsonl
from .line_files import DataError


class GoldFormat(NamedTuple):
    """A format of gold data.

    read (Callable): Reads a file and yields docs.
    group_size (int | None): How many sentences are joined to one doc by default; None
        for formats whose docs stay as they are. A parser learns where sentences begin
        only if a doc has several sentences. But the sentences of an entity file are
        often unrelated, so each of them becomes a separate doc.
    is_raw (bool): Whether the texts still have to be tokenized.
    """

    read: Callable[[Path, Conversion], Iterator[Doc]]
    group_size: int | None = None
    is_raw: bool = False


def read_spacy(path: Path, conversion: Conversion) -> Iterator[Doc]:
    """Read the docs of a .spacy file."""
    for doc in load_docs(path, conversion.nlp.vocab):
        if conversion.spans_key is not None and doc.has_annotation("ENT_IOB"):
            doc.spans[conversion.spans_key] = list(doc.ents)
        yield doc


CONLL_NER = GoldFormat(read_conll_ner, group_size=1)
FORMATS = {
    ".conllu": GoldFormat(read_conllu, group_size=10),
    ".conll": CONLL_NER,
    ".iob": CONLL_NER,
    ".bio": CONLL_NER,
    ".tsv": CONLL_NER,
    ".jsonl": GoldFormat(read_jsonl, is_raw=True),
    ".spacy": GoldFormat(read_spacy),
}


def get_format(path: Path) -> GoldFormat:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        problem = f"found the suffix '{suffix}'; expected one of {', '.join(FORMATS)}"
        raise DataError(path, None, problem)
    return FORMATS[suffix]
