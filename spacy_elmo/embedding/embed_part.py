"""Compute the vectors of a part of a text: always the same bits, whatever the process
has computed before, and however many threads it has."""

import numpy as np

from ..bilm import BiLMBase
from ..bilm.engines.blas_threads import one_blas_thread
from ..bilm.fingerprint import fingerprint
from ..bilm.numpy_model import NumpyBiLM


def embed_part(bilm: BiLMBase, sentences: list[list[str]]) -> list[np.ndarray]:
    """Compute all layers of sentences.

    RETURNS (list[np.ndarray]): float32, (n_layers + 1, n_tokens, width) for each
        sentence.
    """
    if not isinstance(bilm, NumpyBiLM):
        return bilm.embed(sentences)
    # numpy rounds a word's vector differently with other words beside it, or with more
    # threads, so the words of earlier parts may not be in the cache.
    bilm.clear_cache()
    with one_blas_thread():
        return bilm.embed(sentences)


def identify_rows(bilm: BiLMBase) -> str:
    """Return what changes whenever the same sentences would get other bits: a
    fingerprint of the weights, the precision and the engine."""
    return f"{fingerprint(bilm)} {bilm.precision} {type(bilm).__name__}"
