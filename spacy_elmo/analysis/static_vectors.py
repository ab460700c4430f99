"""Look up static word vectors: each word has the same vector in every context."""

from collections.abc import Sequence

import numpy as np
import spacy
from spacy.vocab import Vocab
from thinc.api import NumpyOps


def load_static_vectors(name: str) -> Vocab:
    """Load a pipeline with word vectors, and return its vocab."""
    try:
        vocab = spacy.load(name).vocab
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"{name}: cannot be loaded as a pipeline: {reason}") from None
    if not vocab.vectors_length:
        raise ValueError(f"{name}: found no word vectors; expected some")
    return vocab


def look_up(vocab: Vocab, words: Sequence[str]) -> np.ndarray:
    """Return the vectors of words, (n_words, width). Words without a vector get
    zeros."""
    vectors = np.zeros((len(words), vocab.vectors_length), dtype=np.float32)
    ops = NumpyOps()
    for row, word in enumerate(words):
        vectors[row] = ops.to_numpy(vocab.get_vector(word))
    return vectors
