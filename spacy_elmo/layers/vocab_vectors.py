"""Build a biLM on top of the static vectors of a spaCy vocab."""

import numpy as np
from spacy.vectors import Mode
from spacy.vocab import Vocab
from thinc.api import NumpyOps

from ..bilm import BiLM, LSTMConfig
from ..bilm.lexicon import SPECIAL_WORDS
from ..bilm.word_vectors import bilm_from_word_vectors


def bilm_from_vocab(
    vocab: Vocab, *, lstm: LSTMConfig | None = None, trainable: bool = False
) -> BiLM:
    """Build an untrained biLM whose token vectors are the vectors of a vocab: word2vec,
    GloVe, fastText, or any other vectors that `spacy init vectors` can load.

    vocab (Vocab): A vocab with a vectors table.
    lstm (LSTMConfig | None): The sizes of the LSTMs; None for the default sizes.
    trainable (bool): Whether training updates the vectors.
    """
    vectors = vocab.vectors
    if vectors.mode != Mode.default:
        raise ValueError(
            f"the vocab has vectors of mode '{vectors.mode}', which has no list of "
            "words; expected mode 'default'"
        )
    rows = {
        vocab.strings[key]: row
        for key, row in vectors.key2row.items()
        if key in vocab.strings and vocab.strings[key] not in ("", *SPECIAL_WORDS)
    }
    if not rows:
        raise ValueError("the vocab has no vectors; expected a table of word vectors")
    data = NumpyOps().asarray2f(NumpyOps().to_numpy(vectors.data))
    table = np.ascontiguousarray(data[list(rows.values())])
    return bilm_from_word_vectors(list(rows), table, lstm=lstm, trainable=trainable)
