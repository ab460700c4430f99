"""The convolutions of a character CNN for training on a CPU: what CharCNN.convolve
computes, as one product for filters of all widths and words of all lengths, with a
backward pass that stores no positions."""

from typing import Any, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def same_end(ids: Tensor, n: int) -> bool:
    """RETURNS (bool): Whether each row ends with n equal ids. Then the n windows that
    a narrow filter has more than one of width n all see the same."""
    return bool((ids[:, -n:] == ids[:, -1:]).all())


def convolve_max(
    embedding: Tensor, weights: Sequence[Tensor], groups: Sequence[Tensor]
) -> Tensor:
    """The maximum of every filter over the positions of every word.

    embedding (Tensor): (n_rows, char_dim).
    weights (Sequence[Tensor]): (width * char_dim, number) for each width of filters.
    groups (Sequence[Tensor]): Character ids, (n_words, length) each, whose rows have
        the `same_end` for the widest filter.
    RETURNS (Tensor): (n_words of all groups, number of all widths).
    """
    n_inputs = max(len(weight) for weight in weights)
    padded = [F.pad(weight, (0, 0, 0, n_inputs - len(weight))) for weight in weights]
    return ConvolveMax.apply(embedding, torch.cat(padded, 1), *groups)


class ConvolveMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, embedding: Tensor, weight: Tensor, *groups: Tensor) -> Tensor:
        char_dim = embedding.shape[1]
        shapes, inputs = [], []
        for ids in groups:
            n_words, length = ids.shape
            n_windows = length - len(weight) // char_dim + 1
            strides = (length * char_dim, char_dim, 1)
            chars = F.embedding(ids, embedding)
            windows = chars.as_strided((n_words, n_windows, len(weight)), strides)
            shapes.append((n_words, n_windows))
            inputs.append(windows.reshape(-1, len(weight)))
        flat = torch.cat(inputs)  # (windows of all words, widest * char_dim)
        found = flat @ weight
        best = torch.cat([part.amax(1) for part in _words(found, shapes)])
        ctx.save_for_backward(embedding, weight, flat, found, best, *groups)
        ctx.shapes = shapes
        return best

    @staticmethod
    def backward(ctx: Any, d_best: Tensor) -> Any:
        embedding, weight, flat, found, best, *groups = ctx.saved_tensors
        char_dim = embedding.shape[1]
        n_words = [n for n, _ in ctx.shapes]
        d_found = torch.empty_like(found)
        for part, d, top, d_top in zip(
            _words(found, ctx.shapes),
            _words(d_found, ctx.shapes),
            best.split(n_words),
            d_best.split(n_words),
        ):
            torch.eq(part, top[:, None], out=d)
            # Windows that share the maximum share the gradient. As a rule they are the
            # same characters, of the padding.
            d *= (d_top / d.sum(1))[:, None]
        d_weight = flat.t() @ d_found
        # Many small things are added up here, which a shorter type would lose.
        wide = torch.promote_types(embedding.dtype, torch.float32)
        d_embedding = torch.zeros_like(embedding, dtype=wide)
        for ids, d in zip(groups, _words(d_found @ weight.t(), ctx.shapes)):
            d_chars = d.new_zeros(*ids.shape, char_dim, dtype=wide)
            for k in range(len(weight) // char_dim):
                columns = slice(k * char_dim, (k + 1) * char_dim)
                d_chars[:, k : k + d.shape[1]] += d[:, :, columns]
            d_embedding.index_add_(0, ids.flatten(), d_chars.flatten(0, 1))
        return (d_embedding.to(embedding.dtype), d_weight, *(None for _ in groups))


def _words(flat: Tensor, shapes: Sequence[Tuple[int, int]]) -> Sequence[Tensor]:
    """RETURNS (Sequence[Tensor]): (n_words, n_windows, columns) for each group."""
    parts = flat.split([n_words * n_windows for n_words, n_windows in shapes])
    return [part.view(*shape, -1) for part, shape in zip(parts, shapes)]
