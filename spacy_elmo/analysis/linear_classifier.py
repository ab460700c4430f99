"""Train a linear classifier of vectors: multinomial logistic regression."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

EPOCHS = 10
MIN_STEPS = 1000  # if the data is small, it takes more epochs to reach this
BATCH_SIZE = 256
LEARN_RATE = 0.01  # at the first step; it falls linearly to 0
L2 = 2.0  # fit() minimizes the sum of all losses + L2 * the sum of squared weights
MIN_VARIANCE = 0.01  # added to the variance of each direction, which is 1 on average
CHUNK_ROWS = 2**14  # rows that are converted to float32 at a time


class LinearClassifier(NamedTuple):
    """A trained classifier.

    mean (Tensor): The mean of the vectors it was trained on, (width,).
    weight (Tensor): (width, n_classes).
    bias (Tensor): (n_classes,).
    """

    mean: Tensor
    weight: Tensor
    bias: Tensor

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Return the number of the most likely class of each row, (n,).

        vectors (np.ndarray): (n, width), of any float type.
        """
        chunks = [
            ((chunk - self.mean) @ self.weight + self.bias).argmax(1)
            for chunk in _split_chunks(vectors)
        ]
        return torch.cat(chunks).numpy()


def fit(
    vectors: np.ndarray, labels: np.ndarray, n_classes: int, *, seed: int = 0
) -> LinearClassifier:
    """Train a classifier. The same data and seed always give the same classifier.

    vectors (np.ndarray): (n, width), of any float type.
    labels (np.ndarray): The number of each row's class, (n,).
    """
    mean, matrix = _whitening(vectors)
    data = torch.cat([((x - mean) @ matrix).half() for x in _split_chunks(vectors)])
    gold = torch.from_numpy(labels)
    weight = torch.zeros(data.shape[1], n_classes, requires_grad=True)
    bias = torch.zeros(n_classes, requires_grad=True)
    n = len(data)
    n_batches = -(-n // BATCH_SIZE)
    n_epochs = max(EPOCHS, -(-MIN_STEPS // n_batches))
    optimizer = torch.optim.Adam([weight, bias], lr=LEARN_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.0, n_epochs * n_batches
    )
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_epochs):
        for rows in torch.randperm(n, generator=generator).split(BATCH_SIZE):
            scores = data[rows].float() @ weight + bias
            loss = cross_entropy(scores, gold[rows]) + L2 / n * weight.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return LinearClassifier(mean, matrix @ weight.detach(), bias.detach())


def _whitening(vectors: np.ndarray) -> tuple[Tensor, Tensor]:
    """Compute a transformation after which the vectors have mean 0 and about the same
    variance in all directions.

    The columns of an LSTM's vectors are highly correlated. So it is not enough to scale
    each column to variance 1: training would stop far from the best weights, and
    farther in some layers than in others. MIN_VARIANCE prevents directions with almost
    no variance from being scaled up.

    vectors (np.ndarray): (n, width), of any float type.
    RETURNS (tuple[Tensor, Tensor]): The mean, (width,), which must be subtracted first,
        and the matrix, (width, width), by which the result must be multiplied.
    """
    n, width = vectors.shape
    total = torch.zeros(width, dtype=torch.float64)
    for chunk in _split_chunks(vectors):
        total += chunk.sum(0)
    mean = (total / n).float()
    products = torch.zeros(width, width, dtype=torch.float64)
    for chunk in _split_chunks(vectors):
        products += (chunk - mean).T @ (chunk - mean)
    deviation = (products.diagonal() / n).sqrt()
    scale = torch.where(deviation > 1e-6 * deviation.max(), 1 / deviation, 0)
    variances, directions = torch.linalg.eigh(products / n * scale * scale[:, None])
    variances = variances.clamp(min=0) + MIN_VARIANCE
    return mean, (scale[:, None] * directions / variances.sqrt()).float()


def _split_chunks(vectors: np.ndarray) -> Iterator[Tensor]:
    for chunk in torch.from_numpy(vectors).split(CHUNK_ROWS):
        yield chunk.float()
