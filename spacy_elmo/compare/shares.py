"""Write shares of the training data: the same docs for all variants and seeds."""

import random
from pathlib import Path

from spacy.tokens import Doc
from spacy.training.corpus import walk_corpus
from spacy.vocab import Vocab

from ..files import write_atomically
from ..text.doc_files import load_docs, save_docs

SEED = 0


def load_training_docs(path: Path) -> list[Doc]:
    """Load all docs of a .spacy file or of a folder of such files."""
    vocab = Vocab()
    files = walk_corpus(path, ".spacy")
    docs = [doc for file in files for doc in load_docs(file, vocab)]
    if not docs:
        raise ValueError(f"{path}: found no docs; expected a .spacy file with some")
    return docs


def choose_docs(n_docs: int, share: float) -> list[int]:
    """Choose a share of the docs at random, at least one doc. The docs of a smaller
    share are also in every larger share.

    RETURNS (list[int]): The indices of the docs, sorted.
    """
    indices = list(range(n_docs))
    random.Random(SEED).shuffle(indices)
    return sorted(indices[: max(1, round(share * n_docs))])


def write_share(docs: list[Doc], share: float, path: Path) -> tuple[int, int]:
    """Write a share of the docs to a .spacy file, unless the share is 1. A file that is
    there is replaced, because it might be damaged.

    RETURNS (tuple[int, int]): The number of docs and of words in the share.
    """
    chosen = [docs[index] for index in choose_docs(len(docs), share)]
    if share < 1:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda part: save_docs(chosen, part))
    return len(chosen), sum(len(doc) for doc in chosen)
