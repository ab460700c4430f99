"""Character CNNs on arrays."""

from collections.abc import Sequence

import numpy as np


class NumpyCNN:
    """Maps character ids (n_words, length) to features (n_words, n_filters): embedding,
    convolutions, maximum over positions, activation, highways.

    filters (Sequence): The width and number of the filters of each width.
    arrays (dict[str, np.ndarray]): All weights of the model.
    name (str): The beginning of the names of the CNN's weights.
    """

    def __init__(
        self,
        filters: Sequence[Sequence[int]],
        *,
        n_highway: int,
        activation: str,
        max_chars: int,
        arrays: dict[str, np.ndarray],
        name: str,
    ) -> None:
        self.filters = filters
        self.widest = max(width for width, _ in filters)
        self.max_chars = max_chars
        self.relu = activation == "relu"
        self.embedding = arrays[name + "embedding"]
        self.char_dim = self.embedding.shape[1]
        self.weights = [arrays[f"{name}weights.{i}"] for i in range(len(filters))]
        biases = [arrays[f"{name}biases.{i}"] for i in range(len(filters))]
        self.bias = np.concatenate(biases)
        # The filters of all widths side by side, the narrow ones filled up with zeros.
        n_in = self.widest * self.char_dim
        self.joined = np.zeros((n_in, len(self.bias)), np.float32)
        start = 0
        for part in self.weights:
            self.joined[: len(part), start : start + part.shape[1]] = part
            start += part.shape[1]
        self.highways = [
            (arrays[f"{name}highways.{k}.weight"], arrays[f"{name}highways.{k}.bias"])
            for k in range(n_highway)
        ]

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Map character ids (n_words, length) to features (n_words, n_filters)."""
        n_words, length = ids.shape
        chars = self.embedding[ids].reshape(n_words, length * self.char_dim)
        if length < self.max_chars or self.widest == 1:
            x = self._best(chars, self.joined)
        else:
            # Some rows may have no padding at their end. Then narrow filters have
            # windows that the widest filter does not have.
            x = np.concatenate([self._best(chars, w) for w in self.weights], 1)
        x += self.bias
        if self.relu:
            np.maximum(x, 0, out=x)
        else:
            np.tanh(x, out=x)
        for weight, bias in self.highways:
            x = _highway(x, weight, bias)
        return x

    def _best(self, chars: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Compute the maximum of each filter over all windows, before bias and
        activation.

        chars (np.ndarray): The character vectors, (n_words, length * char_dim).
        weight (np.ndarray): Filters, (width * char_dim, n).
        RETURNS (np.ndarray): (n_words, n).
        """
        size = len(weight)
        best = chars[:, :size] @ weight
        found = np.empty_like(best)
        for start in range(self.char_dim, chars.shape[1] - size + 1, self.char_dim):
            np.matmul(chars[:, start : start + size], weight, out=found)
            np.maximum(best, found, out=best)
        return best


def _highway(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Compute y = g * relu(x Wt + bt) + (1 - g) * x with g = sigmoid(x Wc + bc).

    x (np.ndarray): (n_words, n).
    weight, bias (np.ndarray): [Wt | Wc], (n, 2 * n), and [bt | bc], (2 * n,).
    """
    y = x @ weight
    y += bias
    transform, gate = y[:, : x.shape[1]], y[:, x.shape[1] :]
    np.maximum(transform, 0, out=transform)
    transform -= x
    transform *= sigmoid(gate)
    transform += x
    return transform


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(-x)). exp may overflow to infinity, which gives 0."""
    y = np.exp(-x)
    y += 1
    return np.divide(np.float32(1), y, out=y)
