"""Compute the vectors of a part of a text: always the same bits, whatever the process
has computed before, and however many threads it has."""

from contextlib import nullcontext

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
    # A word's vector is rounded differently with other words beside it, so words of
    # earlier parts may not be in the cache. Within the part, each is computed once.
    bilm.clear_cache()
    # numpy also rounds differently with more threads; torch does not.
    with one_blas_thread() if isinstance(bilm, NumpyBiLM) else nullcontext():
        return bilm.embed(sentences)


def identify_rows(bilm: BiLMBase) -> str:
    """Return what changes whenever the same sentences would get other bits: a
    fingerprint of the weights, the precision and the engine."""
    return f"{fingerprint(bilm)} {bilm.precision} {type(bilm).__name__}"
