"""A linear classifier of vectors: multinomial logistic regression."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

EPOCHS = 10
MIN_STEPS = 1000  # on little data, that is more epochs
BATCH = 256
LEARN_RATE = 0.01  # at first; it falls to 0 on a straight line
L2 = 2.0  # on the squares of all weights, beside the sum of all losses
SHARE = 0.01  # of the mean variance, added to that of all directions
CHUNK = 2**14  # rows that are looked at together


class Classifier(NamedTuple):
    """mean (Tensor): Of the vectors it was trained on, (width,).
    weight (Tensor): (width, n_classes).
    bias (Tensor): (n_classes,).
    """

    mean: Tensor
    weight: Tensor
    bias: Tensor

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """vectors (np.ndarray): (n, width), of any float type.
        RETURNS (np.ndarray): The number of a class for each row.
        """
        parts = [
            ((part - self.mean) @ self.weight + self.bias).argmax(1)
            for part in _chunks(vectors)
        ]
        return torch.cat(parts).numpy()


def fit(
    vectors: np.ndarray, labels: np.ndarray, n_classes: int, *, seed: int = 0
) -> Classifier:
    """Train a classifier. The same input and seed give the same one.

    vectors (np.ndarray): (n, width), of any float type.
    labels (np.ndarray): (n,), numbers of classes.
    """
    mean, matrix = _standardisation(vectors)
    data = torch.cat([((part - mean) @ matrix).half() for part in _chunks(vectors)])
    gold = torch.from_numpy(labels)
    weight = torch.zeros(data.shape[1], n_classes, requires_grad=True)
    bias = torch.zeros(n_classes, requires_grad=True)
    n = len(data)
    n_batches = -(-n // BATCH)
    n_epochs = max(EPOCHS, -(-MIN_STEPS // n_batches))
    optimizer = torch.optim.Adam([weight, bias], lr=LEARN_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.0, n_epochs * n_batches
    )
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_epochs):
        for rows in torch.randperm(n, generator=generator).split(BATCH):
            scores = data[rows].float() @ weight + bias
            loss = cross_entropy(scores, gold[rows]) + L2 / n * weight.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return Classifier(mean, matrix @ weight.detach(), bias.detach())


def _standardisation(vectors: np.ndarray) -> tuple[Tensor, Tensor]:
    """What brings vectors to mean 0 and about the same spread in all directions.

    The numbers of an LSTM's vector go together so much that with columns of spread 1
    alone, training would end far from the best weights, and farther in one layer than
    in another. Directions in which there is next to nothing are not blown up.

    RETURNS (tuple[Tensor, Tensor]): What to take away, (width,), and then to multiply
        with, (width, width).
    """
    n, width = vectors.shape
    total = torch.zeros(width, dtype=torch.float64)
    for part in _chunks(vectors):
        total += part.sum(0)
    mean = (total / n).float()
    products = torch.zeros(width, width, dtype=torch.float64)
    for part in _chunks(vectors):
        products += (part - mean).T @ (part - mean)
    spread = (products.diagonal() / n).sqrt()
    scale = torch.where(spread > 1e-6 * spread.max(), 1 / spread, 0)
    sizes, directions = torch.linalg.eigh(products / n * scale * scale[:, None])
    sizes = sizes.clamp(min=0) + SHARE  # the mean variance of columns is 1
    return mean, (scale[:, None] * directions / sizes.sqrt()).float()


def _chunks(vectors: np.ndarray) -> Iterator[Tensor]:
    for part in torch.from_numpy(vectors).split(CHUNK):
        yield part.float()
