"""Load the inputs of a pipeline in a form that JSON can hold: texts, and docs whose
tokens are given."""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..text.doc_files import load_docs
from ..text.encodings import UTF8, check_encoding
from ..text.line_check import LineCheck
from ..text.paragraphs import RECORDS, load_paragraphs, load_records
from ..text.text_files import find_files, kind_of


def load_inputs(
    pattern: str, encoding: str = UTF8, problems: Counter[str] | None = None
) -> Iterator[Any]:
    """Load the docs of files.

    pattern (str): A file, a folder or a glob pattern. Each line of a .txt file, each
        record of a .jsonl or .parquet file and each doc of a .spacy file is a doc.
    problems (Counter[str] | None): Counts the problems that are found.
    YIELDS (Any): A text, or {"doc": data} for a doc of a .spacy file.
    """
    problems = Counter() if problems is None else problems
    check_encoding(encoding)
    check = LineCheck(encoding)
    for path in find_files([pattern]):
        if kind_of(path) == ".spacy":
            yield from _load_doc_data(path)
        elif kind_of(path) in RECORDS:
            yield from load_records(path, problems, check)
        else:
            for part in load_paragraphs(path, problems, check):
                yield from part.paragraphs
    check.check_all()


def _load_doc_data(path: Path) -> Iterator[dict[str, str]]:
    for doc in load_docs(path, Vocab()):
        data = DocBin(docs=[doc], store_user_data=True).to_bytes()
        yield {"doc": b64encode(data).decode()}


def to_docs(nlp: Language, inputs: list[Any]) -> Iterator[Doc]:
    """Make the docs of inputs, tokenized but not yet annotated."""
    for found in inputs:
        if isinstance(found, str):
            yield nlp.make_doc(found)
        else:
            yield from DocBin().from_bytes(b64decode(found["doc"])).get_docs(nlp.vocab)
