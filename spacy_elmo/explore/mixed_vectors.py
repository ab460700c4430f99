"""Mix the layers of words, and compare the mixes.

A mix is the weighted sum of the layers, each of which was scaled to length 1. So it can
also be computed from an index, which stores vectors of length 1. If only one weight is
not 0, the mix is that layer.
"""

from collections.abc import Sequence

import numpy as np

from ..analysis.layer_vectors import to_unit_length


def fit_weights(weights: Sequence[float], n_layers: int) -> np.ndarray:
    """Return the weights for a biLM that may have fewer layers than there are weights.
    If none of its layers has a weight, its top layer gets all.

    n_layers (int): The number of its layers, with layer 0.
    RETURNS (np.ndarray): (n_layers,); the sum is 1.
    """
    own = np.array(weights[:n_layers], dtype=np.float32)
    if not own.sum():
        own[-1] = 1
    return own / own.sum()


def mix_layers(layers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mix layers, (n_layers, n_words, width), to unit vectors, (n_words, width).

    weights (np.ndarray): The weight of each layer, (n_layers,).
    """
    return to_unit_length(np.tensordot(weights, to_unit_length(layers), 1))


def find_largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the k largest values, (n,), largest first."""
    k = min(k, len(values))
    found = np.argpartition(-values, k - 1)[:k] if k else np.zeros(0, dtype=np.int64)
    return found[np.lexsort((found, -values[found]))]
