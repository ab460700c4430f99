"""Find where sentences begin by punctuation, in docs without sentence boundaries."""

import numpy as np
from spacy.attrs import IS_PUNCT, ORTH
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

SENTENCE_ENDS = frozenset(Sentencizer.default_punct_chars)


def find_sentence_starts(doc: Doc) -> np.ndarray:
    """Find the tokens that begin a sentence, as spaCy's sentencizer does, but faster.

    A sentence begins with the first word after a run of punctuation that contains a
    mark such as "." or "?".

    RETURNS (np.ndarray): The indices of these tokens, (n_sentences,).
    """
    array = doc.to_array([ORTH, IS_PUNCT])
    strings = doc.vocab.strings
    distinct, inverse = np.unique(array[:, 0], return_inverse=True)
    is_end = [strings[int(orth)] in SENTENCE_ENDS for orth in distinct]
    ends = np.array(is_end, dtype=bool)[inverse]
    words = np.flatnonzero(~(ends | (array[:, 1] != 0)))
    if not len(words):
        return np.zeros(1, dtype=np.int64)
    n_ends = np.append(0, np.cumsum(ends))  # sentence ends before each token
    previous = np.append(0, words[:-1])
    begins = words[n_ends[words] > n_ends[previous]]
    return np.unique(np.append(0, begins))
