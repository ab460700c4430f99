"""Sentences by their punctuation, where nothing better is known."""

import numpy as np
from spacy.attrs import IS_PUNCT, ORTH
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

ENDS = frozenset(Sentencizer.default_punct_chars)


def find_starts(doc: Doc) -> np.ndarray:
    """RETURNS (np.ndarray): The places of tokens that begin a sentence."""
    array = doc.to_array([ORTH, IS_PUNCT])
    strings = doc.vocab.strings
    distinct, inverse = np.unique(array[:, 0], return_inverse=True)
    ends = np.array([strings[int(orth)] in ENDS for orth in distinct], dtype=bool)
    return sentence_starts(ends[inverse], array[:, 1] != 0)


def sentence_starts(ends: np.ndarray, punctuation: np.ndarray) -> np.ndarray:
    """The rule of spaCy's sentencizer: a sentence begins with a word after a run of
    punctuation that has an end of sentence in it.

    ends (np.ndarray): Which tokens end sentences, (n,).
    punctuation (np.ndarray): Which are punctuation, (n,).
    RETURNS (np.ndarray): The places of first tokens.
    """
    words = np.flatnonzero(~(ends | punctuation))
    n_ends = np.append(0, np.cumsum(ends))
    if not len(words):
        return np.zeros(1, dtype=np.int64)
    previous = np.append(0, words[:-1])
    begins = words[n_ends[words] > n_ends[previous]]
    return np.unique(np.append(0, begins))
