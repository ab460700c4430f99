"""Products of matrices for training. On a CPU, oneDNN's are faster than those that
torch itself calls for float32; like the packed kernels of inference they are private to
torch, and what they cannot do goes the usual way."""

from typing import Any

import torch
from torch import Tensor

from ..engines.kernels import Kernel, PackedKernel, PlainKernel, has_packed_kernels

# Multiplications from which on it pays. For each shape oneDNN compiles a program first.
LARGE = 2**21


def pays(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN is to multiply x (n, k) and weight (k, m)."""
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == weight.device.type == "cpu"
        and weight.numel() * len(x) >= LARGE
        and has_packed_kernels()
    )


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight + bias, without gradients.

    x (Tensor): (n, k). weight (Tensor): (k, m), or a view of that shape. bias (m,).
    """
    if pays(x, weight):
        return torch.ops.mkldnn._linear_pointwise(x, weight.t(), bias, "none", [], "")
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def step_kernel(weight: Tensor, n_rows: int, *, limit: float | None = None) -> Kernel:
    """RETURNS (Kernel): A product that is taken many times, with n_rows each. Packing
    the weight takes about as long as one of them."""
    packed = pays(weight.new_empty(n_rows, 0), weight)
    return (PackedKernel if packed else PlainKernel)(weight, limit=limit)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        d_x = product(d, weight.t()) if ctx.needs_input_grad[0] else None
        return d_x, product(x.t(), d), d.sum(0)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x weight + bias, with gradients. x (Tensor): (n, k). weight (Tensor): (k, m)."""
    if not torch.is_autocast_enabled(x.device.type) and pays(x, weight):
        return _Linear.apply(x, weight, bias)
    return torch.addmm(bias, x, weight)
