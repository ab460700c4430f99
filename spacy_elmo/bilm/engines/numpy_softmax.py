"""Output layers of the language model on arrays. For the methods see softmax.py."""

import numpy as np

from ..config import SoftmaxConfig
from ..shapes import default_cutoffs
from .blas_threads import one_blas_thread

MAX_LOGITS = 2**22  # logits in memory at a time: 16 MB


class NumpyFullSoftmax:
    """A softmax with one row of weights per word. A sampled softmax is one too, except
    in training."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.weight = arrays["softmax.weight"]
        self.bias = arrays["softmax.bias"]

    def log_probs(self, hidden: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Compute the natural logarithm of each target's probability.

        hidden (np.ndarray): (n, proj).
        targets (np.ndarray): Word numbers, (n,).
        RETURNS (np.ndarray): (n,).
        """
        size = max(1, MAX_LOGITS // len(self.weight))
        found = [np.zeros(0, np.float32)]
        for at in range(0, len(hidden), size):
            logs = self.all_log_probs(hidden[at : at + size])
            found.append(_pick(logs, targets[at : at + size]))
        return np.concatenate(found)

    def all_log_probs(self, hidden: np.ndarray) -> np.ndarray:
        """Compute the log probabilities of all words, (n, n_words)."""
        with one_blas_thread():
            return _log_softmax(hidden @ self.weight.T + self.bias)


class NumpyAdaptiveSoftmax:
    """A softmax that puts rare words into clusters with smaller vectors."""

    def __init__(self, config: SoftmaxConfig, arrays: dict[str, np.ndarray]) -> None:
        self.n_words = config.n_words
        self.cutoffs = config.cutoffs or default_cutoffs(config.n_words)
        name = "softmax.softmax."
        self.head = arrays[name + "head.weight"]
        self.tails = [
            (arrays[f"{name}tail.{i}.0.weight"], arrays[f"{name}tail.{i}.1.weight"])
            for i in range(len(self.cutoffs))
        ]

    def log_probs(self, hidden: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Compute the natural logarithm of each target's probability; see
        NumpyFullSoftmax."""
        cluster = np.searchsorted(self.cutoffs, targets, side="right")  # 0 is the head
        # The head has an output for each of its words and one for each other cluster.
        place = np.where(cluster, self.cutoffs[0] + cluster - 1, targets)
        out = np.zeros(len(hidden), np.float32)
        size = max(1, MAX_LOGITS // self.n_words)
        for at in range(0, len(hidden), size):
            part = slice(at, at + size)
            out[part] = _pick(self._head(hidden[part]), place[part])
        for number, start in enumerate(self.cutoffs):
            found = np.flatnonzero(cluster == number + 1)
            for at in range(0, len(found), size):
                rows = found[at : at + size]
                logs = self._cluster(number, hidden[rows])
                out[rows] += _pick(logs, targets[rows] - start)
        return out

    def all_log_probs(self, hidden: np.ndarray) -> np.ndarray:
        """Compute the log probabilities of all words, (n, n_words)."""
        head = self._head(hidden)
        n_common = self.cutoffs[0]
        parts = [head[:, :n_common]]
        for number in range(len(self.tails)):
            whole = head[:, n_common + number, None]
            parts.append(whole + self._cluster(number, hidden))
        return np.concatenate(parts, 1)

    def _head(self, hidden: np.ndarray) -> np.ndarray:
        """Compute the log probabilities of common words and of clusters."""
        with one_blas_thread():
            return _log_softmax(hidden @ self.head.T)

    def _cluster(self, number: int, hidden: np.ndarray) -> np.ndarray:
        """Compute the log probabilities of the words of a cluster, given the
        cluster."""
        down, up = self.tails[number]
        with one_blas_thread():
            return _log_softmax(hidden @ down.T @ up.T)


NumpySoftmax = NumpyFullSoftmax | NumpyAdaptiveSoftmax


def make_numpy_softmax(
    config: SoftmaxConfig, arrays: dict[str, np.ndarray]
) -> NumpySoftmax:
    """Make the output layer that the config describes.

    arrays (dict[str, np.ndarray]): All weights of the model.
    """
    if config.type == "adaptive":
        return NumpyAdaptiveSoftmax(config, arrays)
    return NumpyFullSoftmax(arrays)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits -= logits.max(1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    return logits


def _pick(logs: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Take one column from each row."""
    return logs[np.arange(len(logs)), words]
