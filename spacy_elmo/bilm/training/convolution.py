"""The convolutions of a character CNN, for training. Computes the same as
CharCNN.convolve, but with one matrix product for filters of all widths and a
hand-written backward pass."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .matmul import matmul


def same_end(ids: Tensor, n: int) -> bool:
    """Return whether each row of ids (n_words, length) ends with n equal ids, as
    padding does. A filter narrower than n has more windows than one of width n. If the
    ends are equal, the additional windows only repeat a window of padding, and the
    maximum does not need them."""
    return bool((ids[:, -n:] == ids[:, -1:]).all())


def convolve_max(
    embedding: Tensor, weights: Sequence[Tensor], groups: Sequence[Tensor]
) -> Tensor:
    """Compute the maximum of every filter over the positions of every word, before bias
    and activation.

    embedding (Tensor): The character embeddings, (n_rows, char_dim).
    weights (Sequence[Tensor]): (width * char_dim, n_filters) for each filter width.
    groups (Sequence[Tensor]): Character ids, (n_words, length) each. `same_end` must be
        true of each group for the widest filter.
    RETURNS (Tensor): (n_words of all groups, n_filters of all widths).
    """
    n_inputs = max(len(weight) for weight in weights)
    padded = [F.pad(weight, (0, 0, 0, n_inputs - len(weight))) for weight in weights]
    return ConvolveMax.apply(embedding, torch.cat(padded, 1), *groups)


class ConvolveMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, embedding: Tensor, weight: Tensor, *groups: Tensor) -> Tensor:
        char_dim = embedding.shape[1]
        inputs, found, best = [], [], []
        for ids in groups:
            n_words, length = ids.shape
            n_windows = length - len(weight) // char_dim + 1
            strides = (length * char_dim, char_dim, 1)
            chars = F.embedding(ids, embedding)
            windows = chars.as_strided((n_words, n_windows, len(weight)), strides)
            flat = windows.reshape(-1, len(weight))  # (.., widest * char_dim)
            part = matmul(flat, weight).view(n_words, n_windows, -1)
            inputs.append(flat)
            found.append(part)
            best.append(part.amax(1))
        ctx.save_for_backward(embedding, weight, *inputs, *found, *best, *groups)
        return torch.cat(best)

    @staticmethod
    def backward(ctx: Any, d_best: Tensor) -> Any:
        embedding, weight, *saved = ctx.saved_tensors
        n = len(saved) // 4
        inputs, found, best, groups = (saved[k * n : (k + 1) * n] for k in range(4))
        char_dim = embedding.shape[1]
        # Sum many small gradients in float32 at least: float16 would lose them.
        wide = torch.promote_types(embedding.dtype, torch.float32)
        d_weight = torch.zeros_like(weight, dtype=wide)
        d_embedding = torch.zeros_like(embedding, dtype=wide)
        d_tops = d_best.split([len(ids) for ids in groups])
        for flat, part, top, ids, d_top in zip(inputs, found, best, groups, d_tops):
            d_part = torch.eq(part, top[:, None], out=torch.empty_like(part))
            # Windows with the same maximum share its gradient. Usually these are
            # windows of padding, with the same characters.
            d_part *= (d_top / d_part.sum(1))[:, None]
            d_flat = d_part.flatten(0, 1)
            d_weight += matmul(flat.t(), d_flat)
            d = matmul(d_flat, weight.t()).view(*part.shape[:2], -1)
            d_chars = d.new_zeros(*ids.shape, char_dim, dtype=wide)
            for k in range(len(weight) // char_dim):
                columns = slice(k * char_dim, (k + 1) * char_dim)
                d_chars[:, k : k + d.shape[1]].add_(d[:, :, columns])
            d_embedding.index_add_(0, ids.flatten(), d_chars.flatten(0, 1))
        gradients = d_embedding.to(embedding.dtype), d_weight.to(weight.dtype)
        return (*gradients, *(None for _ in groups))
