"""Compute the loss of a softmax together with its gradients. In one pass, logits need
not be kept or recomputed for the backward pass. This is possible because in training
nothing follows the loss, so its own gradient is always 1."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..devices import to_device
from ..softmax import FullSoftmax, SampledSoftmax, Softmax
from .matmul import matmul

CHUNK_LOGITS = 2**23  # logits at a time: 32 MB, enough for fast products


class RowGradient(NamedTuple):
    """The gradient of a few rows of a large table: the distinct row numbers (n,), on
    the host, and the gradient of each row (n, ...)."""

    rows: Tensor
    values: Tensor


Gradient = Tensor | RowGradient
# Distinct words (n_samples,), on the host, and the number of draws; see
# SampledSoftmax.draw.
Sample = tuple[Tensor, int]


class HeadResult(NamedTuple):
    """The result of a softmax.

    loss: The loss, summed over the targets, a scalar.
    d_hidden: The gradient of the hidden states, (n, proj).
    gradients: The gradients of the softmax's weights, by their names.
    """

    loss: Tensor
    d_hidden: Tensor
    gradients: dict[str, Gradient]


def draw_sample(head: Softmax) -> Sample | None:
    """Draw the sample of words for the loss of a sampled softmax. Return None for a
    softmax of another type."""
    return head.draw() if isinstance(head, SampledSoftmax) else None


def loss_and_gradients(
    head: Softmax,
    hidden: Tensor,
    targets: Tensor,
    sample: Sample | None,
    dtype: torch.dtype | None = None,
) -> HeadResult:
    """Compute the loss of the targets and its gradients.

    hidden (Tensor): Hidden states, (n, proj).
    targets (Tensor): The words to predict, (n,), on the host.
    sample (Sample | None): The result of draw_sample.
    dtype (torch.dtype | None): The dtype of a sampled softmax's matrix products; None
        for the dtype of hidden.
    """
    if sample is not None:
        assert isinstance(head, SampledSoftmax)
        return _sampled(head, hidden, targets, sample, dtype or hidden.dtype)
    if isinstance(head, FullSoftmax):
        return _full(head, hidden, targets)
    with torch.enable_grad():
        hidden = hidden.detach().requires_grad_()
        loss = head.loss(hidden, targets)
        names, weights = zip(*head.named_parameters())
        d_hidden, *d_weights = torch.autograd.grad(
            loss, [hidden, *weights], allow_unused=True, materialize_grads=True
        )
    return HeadResult(loss.detach(), d_hidden, dict(zip(names, d_weights)))


@torch.no_grad()
def _full(head: FullSoftmax, hidden: Tensor, targets: Tensor) -> HeadResult:
    weight, bias = head.weight, head.bias
    # Compute the gradients of weight and bias transposed, (proj + 1, n_words): then the
    # product transposes the hidden states, which is cheaper than the logits.
    ones = hidden.new_ones(len(hidden), 1)
    inputs = torch.cat([hidden, ones], 1)
    d_weights = hidden.new_zeros(inputs.shape[1], head.n_words)
    d_hidden = torch.empty_like(hidden)
    loss = hidden.new_zeros(())
    targets = to_device(targets, hidden.device)
    size = max(1, CHUNK_LOGITS // head.n_words)
    for start in range(0, len(hidden), size):
        rows = slice(start, start + size)
        own = targets[rows, None]
        logits = matmul(hidden[rows], weight.t(), bias)
        d_logits = torch.softmax(logits, 1)
        found = d_logits.gather(1, own)
        loss -= found.clamp_min(torch.finfo(found.dtype).tiny).log().sum()
        d_logits.scatter_(1, own, found - 1)
        d_hidden[rows] = matmul(d_logits, weight)
        d_weights += matmul(inputs[rows].t(), d_logits)
    gradients: dict[str, Gradient] = {
        "weight": d_weights[:-1].t().contiguous(),
        "bias": d_weights[-1],
    }
    return HeadResult(loss, d_hidden, gradients)


@torch.no_grad()
def _sampled(
    head: SampledSoftmax,
    hidden: Tensor,
    targets: Tensor,
    sample: Sample,
    dtype: torch.dtype,
) -> HeadResult:
    words, n_tries = sample
    # Their distinct numbers, among others, are found on the host, without waiting.
    rows, own_rows = (to_device(x, hidden.device) for x in (words, targets))
    own_weight = head.weight[own_rows]  # (n, proj)
    own = (hidden * own_weight).sum(1) + head.bias[own_rows]
    own_count, count = (
        to_device(head.log_expected_count(x, n_tries), hidden.device)
        for x in (targets, words)
    )
    own = own - own_count  # (n,)
    bias = head.bias[rows] - count
    weight = head.weight[rows].to(dtype)
    others = matmul(hidden.to(dtype), weight.t()).to(hidden.dtype)  # (n, n_samples)
    others += bias
    _forbid(others, words, targets)
    highest = torch.maximum(own, others.amax(1))
    # The probabilities are these values divided by their total. To save time, smaller
    # tensors are divided by the total below.
    d_others = others.sub_(highest[:, None]).exp_()
    d_own = (own - highest).exp()
    total = d_others.sum(1) + d_own
    share = total.reciprocal()
    d_own = d_own * share - 1
    d_others = d_others.to(dtype)
    d_hidden = torch.addcmul(
        matmul(d_others, weight).to(hidden.dtype).mul_(share[:, None]),
        d_own[:, None],
        own_weight,
    )
    shared = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], 1) * share[:, None]
    # Transposing the hidden states is cheaper than transposing d_others.
    d_words = matmul(shared.to(dtype).t(), d_others).t().to(hidden.dtype)
    parts = [
        RowGradient(words, d_words[:, :-1]),
        RowGradient(targets, d_own[:, None] * hidden),
    ]
    bias_parts = [RowGradient(words, d_words[:, -1]), RowGradient(targets, d_own)]
    gradients: dict[str, Gradient] = {
        "weight": merge_rows(parts),
        "bias": merge_rows(bias_parts),
    }
    loss = (total.log() + highest - own).sum()
    return HeadResult(loss, d_hidden, gradients)


def _forbid(logits: Tensor, words: Tensor, targets: Tensor) -> None:
    """Set the logit of a sampled word to -inf where that word is the target itself.

    logits (Tensor): (n, n_samples), changed in place.
    words (Tensor): The sampled words, (n_samples,).
    targets (Tensor): (n,). Like words, they are on the host.
    """
    ranked, order = words.sort()
    place = torch.searchsorted(ranked, targets).clamp_max_(len(words) - 1)
    hit = to_device(ranked[place] == targets, logits.device)
    column = to_device(order[place], logits.device)[:, None]
    old = logits.gather(1, column)
    logits.scatter_(1, column, old.masked_fill(hit[:, None], float("-inf")))


def merge_rows(parts: Sequence[RowGradient]) -> RowGradient:
    """Add up gradients that may have rows in common."""
    rows, places = torch.unique(
        torch.cat([part.rows for part in parts]), return_inverse=True
    )
    values = torch.cat([part.values for part in parts])
    total = values.new_zeros(len(rows), *values.shape[1:])
    places = to_device(places, values.device)
    return RowGradient(rows, total.index_add_(0, places, values))


def add_gradients(parts: list[Gradient]) -> Gradient:
    """Add up gradients of one weight."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], RowGradient):
        return merge_rows([part for part in parts if isinstance(part, RowGradient)])
    dense = [part for part in parts if isinstance(part, Tensor)]
    return sum(dense[1:], dense[0])
