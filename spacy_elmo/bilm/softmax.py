"""Output layers of the language model, shared by both directions.

Each class has two methods. `loss(hidden, targets)` returns the summed negative log
likelihood to train on, a scalar; a sampled softmax estimates it. `log_probs(hidden,
targets)` returns the exact natural logarithm of each target's probability, (n,).

hidden is (n, proj), on the device. targets is (n,), on the device or on the host. An
adaptive softmax is faster with targets on the host: it needs them there, and to copy
them from a GPU it would have to wait for the GPU."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .config import SoftmaxConfig
from .devices import to_device
from .shapes import cluster_divisor, default_cutoffs

MAX_LOGITS = 2**24  # logits in memory at a time: 64 MB
WORDS_AT_A_TIME = 2**16


class FullSoftmax(nn.Module):
    """A softmax with one row of weights per word. Logits are computed for a chunk of
    rows and words at a time, forward and backward, so that a vocabulary of a million
    words fits into memory."""

    def __init__(self, config: SoftmaxConfig, projection_dim: int) -> None:
        super().__init__()
        self.n_words = config.n_words
        self.weight = nn.Parameter(torch.empty(config.n_words, projection_dim))
        self.bias = nn.Parameter(torch.empty(config.n_words))

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, 0.0, math.sqrt(1.0 / self.weight.shape[1]))
        nn.init.zeros_(self.bias)

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return -self.log_probs(hidden, targets).sum()

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return self._own(hidden, targets) - self.log_total(hidden)

    def all_log_probs(self, hidden: Tensor) -> Tensor:
        """Compute the log probabilities of all words, (n, n_words)."""
        return F.log_softmax(torch.addmm(self.bias, hidden, self.weight.t()), 1)

    def _own(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Compute the logits of the targets, (n,)."""
        targets = to_device(targets, hidden.device)
        return (hidden * self.weight[targets]).sum(1) + self.bias[targets]

    def log_total(self, hidden: Tensor) -> Tensor:
        """Compute the logarithm of the sum of exp(logit) over all words, (n,)."""
        totals: list[Tensor] = []
        for rows, words in self._chunks(len(hidden)):
            # The backward pass recomputes the logits of a chunk, to save memory.
            part = checkpoint(
                log_sum_exp,
                hidden[rows],
                self.weight[words],
                self.bias[words],
                use_reentrant=False,
                preserve_rng_state=False,  # log_sum_exp draws no random numbers
            )
            if words.start:
                part = torch.logaddexp(totals.pop(), part)
            totals.append(part)
        return torch.cat(totals) if totals else hidden.new_zeros(0)

    def _chunks(self, n_rows: int) -> Iterator[tuple[slice, slice]]:
        n_words = min(self.n_words, WORDS_AT_A_TIME)
        size = max(1, MAX_LOGITS // n_words)
        for row in range(0, n_rows, size):
            for word in range(0, self.n_words, n_words):
                yield slice(row, row + size), slice(word, word + n_words)


def log_sum_exp(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, hidden, weight.t()).logsumexp(1)


class SampledSoftmax(FullSoftmax):
    """A softmax whose loss compares the target with a sample of words instead of all
    words. The sample is drawn without replacement from a log-uniform distribution over
    ranks (words are sorted by falling frequency). The logarithm of a word's expected
    count in the sample is subtracted from its logit. A sampled word that is the target
    itself is left out."""

    def __init__(self, config: SoftmaxConfig, projection_dim: int) -> None:
        super().__init__(config, projection_dim)
        self.n_samples = config.n_samples

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        targets = to_device(targets, hidden.device)
        sample, n_tries = self.draw(hidden.device)
        own = self._own(hidden, targets)
        own = own - self.log_expected_count(targets, n_tries)  # (n,)
        others = torch.addmm(self.bias[sample], hidden, self.weight[sample].t())
        others = others - self.log_expected_count(sample, n_tries)  # (n, n_samples)
        others = others.masked_fill(sample == targets[:, None], -math.inf)
        logits = torch.cat([own[:, None], others], 1)
        return -F.log_softmax(logits, 1)[:, 0].sum()

    def draw(self, device: torch.device | str | None = None) -> tuple[Tensor, int]:
        """Draw a sample.

        RETURNS (tuple[Tensor, int]): Distinct words, (n_samples,), and the number of
            draws that were needed to find them.
        """
        found = torch.empty(0, dtype=torch.int64)
        n_tries = 0
        size = self.n_samples
        while True:
            # Apply the inverse of the distribution function to uniform numbers.
            ranks = torch.exp(
                torch.rand(size, dtype=torch.float64) * math.log(self.n_words + 1)
            )
            draws = (ranks.long() - 1).clamp_(0, self.n_words - 1)
            seen = torch.cat([found, draws])
            first = _first_places(seen)
            if len(first) >= self.n_samples:
                last = int(first[self.n_samples - 1])
                n_tries += last + 1 - len(found)
                sample = seen[first[: self.n_samples]]
                return to_device(sample, device or "cpu"), n_tries
            found = seen[first]
            n_tries += size

    def log_expected_count(self, words: Tensor, n_tries: int) -> Tensor:
        """Compute the log probability that each word is in a sample of n_tries draws.

        words (Tensor): Word numbers, (n,).
        RETURNS (Tensor): (n,).
        """
        ranks = words.double()
        p = torch.log1p(1 / (ranks + 1)) / math.log(self.n_words + 1)
        count = -torch.expm1(n_tries * torch.log1p(-p))
        return count.log().to(self.weight.dtype)


def _first_places(values: Tensor) -> Tensor:
    """Return the position of the first occurrence of each value, in rising order."""
    distinct, inverse = torch.unique(values, return_inverse=True)
    places = torch.arange(len(values))
    first = torch.full((len(distinct),), len(values), dtype=torch.int64)
    first.scatter_reduce_(0, inverse, places, "amin")
    return first.sort().values


class AdaptiveSoftmax(nn.Module):
    """A softmax that puts rare words into clusters with smaller vectors (Grave et al.
    2017). It uses the weights of torch's module, but not its forward pass, which has to
    wait for a GPU to find the cluster of each target."""

    def __init__(self, config: SoftmaxConfig, projection_dim: int) -> None:
        super().__init__()
        self.n_words = config.n_words
        cutoffs = config.cutoffs or default_cutoffs(config.n_words)
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            projection_dim,
            config.n_words,
            cutoffs,
            div_value=cluster_divisor(projection_dim, len(cutoffs)),
        )

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return -self.log_probs(hidden, targets).sum()

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        if not len(targets):
            return hidden.new_zeros(0)
        words = targets.cpu().numpy()
        if words.min() < 0 or words.max() >= self.n_words:
            raise ValueError(
                f"found targets from {words.min()} to {words.max()}; expected words "
                f"from 0 to {self.n_words - 1}"
            )
        cutoffs = self.softmax.cutoffs[:-1]
        cluster = np.searchsorted(cutoffs, words, side="right")  # 0 is the head
        # The head has an output for each of its words and one for each other cluster.
        place = np.where(cluster, cutoffs[0] + cluster - 1, words)
        out = _log_probs(self.softmax.head(hidden), place)
        for number, (start, tail) in enumerate(zip(cutoffs, self.softmax.tail), 1):
            found = np.flatnonzero(cluster == number)
            if len(found):
                rows = to_device(found, hidden.device)
                inside = _log_probs(tail(hidden[rows]), words[found] - start)
                out = out.index_add(0, rows, inside)
        return out

    def all_log_probs(self, hidden: Tensor) -> Tensor:
        """Compute the log probabilities of all words, (n, n_words)."""
        return self.softmax.log_prob(hidden)


def _log_probs(logits: Tensor, words: np.ndarray) -> Tensor:
    """Compute the log probability of one word per row.

    logits (Tensor): (n, n_words).
    words (np.ndarray): (n,).
    RETURNS (Tensor): (n,).
    """
    index = to_device(words, logits.device)[:, None]
    return F.log_softmax(logits, 1).gather(1, index)[:, 0]


Softmax = FullSoftmax | SampledSoftmax | AdaptiveSoftmax
SOFTMAXES = {
    "full": FullSoftmax,
    "sampled": SampledSoftmax,
    "adaptive": AdaptiveSoftmax,
}


def make_softmax(config: SoftmaxConfig, projection_dim: int) -> Any:
    """Make the output layer that the config describes, with uninitialized weights."""
    return SOFTMAXES[config.type](config, projection_dim)
