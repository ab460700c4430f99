"""Train a linear classifier of vectors: multinomial logistic regression."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

EPOCHS = 10
MIN_STEPS = 1000  # small data gets more epochs, until it reaches this
BATCH_SIZE = 256
LEARN_RATE = 0.01  # at the first step; it falls linearly to 0
L2 = 2.0  # fit() minimizes the sum of all losses + L2 * the sum of squared weights
MIN_VARIANCE = 0.01  # added to the variance of each direction, which is 1 on average
CHUNK_ROWS = 2**14  # rows that are converted to float32 at a time


class LinearClassifier(NamedTuple):
    """A trained classifier.

    mean (np.ndarray): The mean of the vectors it was trained on, (width,).
    weight (np.ndarray): (width, n_classes).
    bias (np.ndarray): (n_classes,).
    """

    mean: np.ndarray
    weight: np.ndarray
    bias: np.ndarray

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Return the number of the most likely class of each row, (n,).

        vectors (np.ndarray): (n, width), of any float type.
        """
        chunks = [
            ((chunk - self.mean) @ self.weight + self.bias).argmax(1)
            for chunk in _split_chunks(vectors)
        ]
        return np.concatenate(chunks)


def fit(
    vectors: np.ndarray, labels: np.ndarray, n_classes: int, *, seed: int = 0
) -> LinearClassifier:
    """Train a classifier. The same data and seed always give the same classifier.

    vectors (np.ndarray): (n, width), of any float type.
    labels (np.ndarray): The number of each row's class, (n,).
    """
    mean, matrix = _whitening(vectors)
    chunks = ((x - mean) @ matrix for x in _split_chunks(vectors))
    data = np.concatenate([chunk.astype(np.float16) for chunk in chunks])
    weight = np.zeros((data.shape[1], n_classes), np.float32)
    bias = np.zeros(n_classes, np.float32)
    n = len(data)
    n_batches = -(-n // BATCH_SIZE)
    n_epochs = max(EPOCHS, -(-MIN_STEPS // n_batches))
    optimizer = Adam([weight, bias], n_steps=n_epochs * n_batches)
    generator = np.random.default_rng(seed)
    for _ in range(n_epochs):
        order = generator.permutation(n)
        for at in range(0, n, BATCH_SIZE):
            rows = order[at : at + BATCH_SIZE]
            x = data[rows].astype(np.float32)
            d_scores = _score_gradients(x @ weight + bias, labels[rows])
            d_weight = x.T @ d_scores + np.float32(2 * L2 / n) * weight
            optimizer.step([d_weight, d_scores.sum(0)])
    return LinearClassifier(mean, matrix @ weight, bias)


def _score_gradients(scores: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Compute the gradient of the mean cross entropy.

    scores (np.ndarray): (n, n_classes).
    gold (np.ndarray): The right class of each row, (n,).
    RETURNS (np.ndarray): (n, n_classes).
    """
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(gold)), gold] -= 1
    return shares / np.float32(len(gold))


class Adam:
    """The optimizer Adam, with a learning rate that falls linearly to 0.

    weights (list[np.ndarray]): The arrays to update in place.
    n_steps (int): The number of steps after which the learning rate is 0.
    """

    BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, weights: list[np.ndarray], n_steps: int) -> None:
        self.weights = weights
        self.n_steps = n_steps
        self.n_done = 0
        self.moments = [(np.zeros_like(w), np.zeros_like(w)) for w in weights]

    def step(self, gradients: list[np.ndarray]) -> None:
        rate = LEARN_RATE * (1 - self.n_done / self.n_steps)
        self.n_done += 1
        rate /= 1 - self.BETA_1**self.n_done
        correction = (1 - self.BETA_2**self.n_done) ** -0.5
        for weight, gradient, (m, v) in zip(self.weights, gradients, self.moments):
            m += (1 - self.BETA_1) * (gradient - m)
            v += (1 - self.BETA_2) * (gradient**2 - v)
            weight -= rate * m / (np.sqrt(v) * correction + self.EPSILON)


def _whitening(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute a transformation after which the vectors have mean 0 and about the same
    variance in all directions.

    The columns of an LSTM's vectors are highly correlated. So it is not enough to scale
    each column to variance 1: training would stop far from the best weights, and
    farther in some layers than in others. MIN_VARIANCE prevents directions with almost
    no variance from being scaled up.

    vectors (np.ndarray): (n, width), of any float type.
    RETURNS (tuple[np.ndarray, np.ndarray]): The mean, (width,), which must be
        subtracted first, and the matrix, (width, width), by which the result must be
        multiplied.
    """
    n, width = vectors.shape
    total = np.zeros(width)
    for chunk in _split_chunks(vectors):
        total += chunk.sum(0)
    mean = (total / n).astype(np.float32)
    products = np.zeros((width, width))
    for chunk in _split_chunks(vectors):
        products += (chunk - mean).T @ (chunk - mean)
    deviation = np.sqrt(products.diagonal() / n)
    scale = np.zeros(width)
    used = deviation > 1e-6 * deviation.max()
    scale[used] = 1 / deviation[used]
    variances, directions = np.linalg.eigh(products / n * scale * scale[:, None])
    variances = variances.clip(min=0) + MIN_VARIANCE
    matrix = scale[:, None] * directions / np.sqrt(variances)
    return mean, matrix.astype(np.float32)


def _split_chunks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    for at in range(0, len(vectors), CHUNK_ROWS):
        yield vectors[at : at + CHUNK_ROWS].astype(np.float32)
