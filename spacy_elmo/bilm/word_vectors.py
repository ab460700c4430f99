"""Make an untrained biLM whose inputs are static word vectors."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from .config import BiLMConfig, LSTMConfig, WordsConfig
from .encoders import WordEncoder
from .lexicon import SPECIAL_WORDS, Lexicon
from .model import BiLM


def bilm_from_word_vectors(
    words: Sequence[str],
    vectors: np.ndarray,
    *,
    lstm: LSTMConfig | None = None,
    trainable: bool = False,
) -> BiLM:
    """Make an untrained biLM that encodes words with a table of static word vectors.

    words (Sequence[str]): Distinct words.
    vectors (np.ndarray): Their vectors, (n_words, dim). Unknown words get the mean of
        all vectors. The two sentence boundaries get random vectors with the standard
        deviation of the others.
    lstm (LSTMConfig | None): Sizes of the LSTMs; None for the defaults.
    trainable (bool): Whether training changes the table.
    RETURNS (BiLM): The model.
    """
    if len(words) != len(vectors) or len(set(words)) != len(words):
        raise ValueError(
            f"found {len(words)} words, {len(set(words))} of them distinct, with "
            f"{len(vectors)} vectors; expected distinct words with a vector each"
        )
    names = [*SPECIAL_WORDS, *words]
    if len(set(names)) != len(names):
        raise ValueError(f"words may not be one of {SPECIAL_WORDS}")
    config = BiLMConfig(
        encoder=WordsConfig(dim=vectors.shape[1], trainable=trainable),
        lstm=lstm or LSTMConfig(),
    )
    bilm = BiLM(config, lexicon=Lexicon(words={w: i for i, w in enumerate(names)}))
    noise = np.random.default_rng(0).normal(0, vectors.std(), (2, vectors.shape[1]))
    table = np.concatenate([noise, vectors.mean(0, keepdims=True), vectors])
    with torch.no_grad():
        cast(WordEncoder, bilm.encoder).table.copy_(torch.from_numpy(table))
    return bilm
