"""Word vectors that do not see the context."""

from collections.abc import Sequence

import numpy as np
import spacy
from spacy.vocab import Vocab
from thinc.api import NumpyOps


def load_static(name: str) -> Vocab:
    """RETURNS (Vocab): That of a pipeline with word vectors."""
    try:
        vocab = spacy.load(name).vocab
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"{name}: cannot be loaded as a pipeline: {reason}") from None
    if not vocab.vectors_length:
        raise ValueError(
            f"{name}: found no word vectors; expected a pipeline with some"
        )
    return vocab


def static_vectors(vocab: Vocab, words: Sequence[str]) -> np.ndarray:
    """RETURNS (np.ndarray): (n_words, width), zeros for words without a vector."""
    vectors = np.zeros((len(words), vocab.vectors_length), dtype=np.float32)
    ops = NumpyOps()
    for row, word in enumerate(words):
        vectors[row] = ops.to_numpy(vocab.get_vector(word))
    return vectors
