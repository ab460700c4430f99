"""Training data: its size and parts of it."""

import random
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.training.corpus import walk_corpus
from spacy.vocab import Vocab

from ..files import write_atomically

SEED = 0  # the parts are the same for all variants and seeds


def read_docs(path: Path) -> list[Doc]:
    """RETURNS (list[Doc]): All docs of a .spacy file or a folder of them."""
    vocab = Vocab()
    docs: list[Doc] = []
    for file in walk_corpus(path, ".spacy"):
        try:
            docs += DocBin().from_disk(file).get_docs(vocab)
        except Exception as error:  # of zlib, msgpack or spaCy
            raise ValueError(f"{file}: cannot be read as docs ({error})") from None
    if not docs:
        raise ValueError(f"{path}: found no docs; expected a .spacy file with some")
    return docs


def choose(n_docs: int, share: float) -> list[int]:
    """RETURNS (list[int]): Which docs are a share of all, in order. A smaller share is
    part of a larger one."""
    numbers = list(range(n_docs))
    random.Random(SEED).shuffle(numbers)
    return sorted(numbers[: max(1, round(share * n_docs))])


def write_share(docs: list[Doc], share: float, path: Path) -> tuple[int, int]:
    """Write a part of docs, unless it is all of them.

    RETURNS (tuple[int, int]): Its docs and words.
    """
    chosen = [docs[number] for number in choose(len(docs), share)]
    if share < 1 and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, DocBin(docs=chosen, store_user_data=True).to_disk)
    return len(chosen), sum(len(doc) for doc in chosen)
