"""Load and save `.spacy` files: docs as spaCy stores them."""

from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .text_files import open_file


def load_docs(path: Path, vocab: Vocab) -> list[Doc]:
    """Load all docs of a `.spacy` file, or of one that was compressed (`.spacy.gz`).

    path (Path): The file. If it cannot be read, a ValueError names it.
    vocab (Vocab): The vocab that the docs get.
    RETURNS (list[Doc]): The docs, in the order in which they were saved.
    """
    try:
        with open_file(path) as file:
            return list(DocBin().from_bytes(file.read()).get_docs(vocab))
    except Exception as error:  # zlib, msgpack and numpy raise many kinds of errors
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path}: cannot be read as a .spacy file ({reason})"
        ) from None


def save_docs(docs: Iterable[Doc], path: Path) -> None:
    """Save docs as a `.spacy` file, with their categories, spans and extensions."""
    DocBin(docs=docs, store_user_data=True).to_disk(path)
