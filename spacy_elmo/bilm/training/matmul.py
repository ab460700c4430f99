"""Matrix products for training. For large float32 matrices on a CPU, oneDNN's product
is faster than the one that torch chooses. torch has it only as a private operator, so
torch's public product is used wherever that operator is missing or does not fit."""

from typing import Any

import torch
from torch import Tensor

from ..engines import kernels
from ..engines.kernels import Kernel, PackedKernel, PlainKernel

# The number of multiplications from which on oneDNN is used. It compiles a program for
# each shape, which does not pay for small products.
LARGE = 2**21


def use_onednn(x: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN should multiply x (n, k) by weight (k, m)."""
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == weight.device.type == "cpu"
        and weight.numel() * len(x) >= LARGE
        and kernels.has_packed_kernels()
    )


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x weight + bias, without gradients.

    x (Tensor): (n, k).
    weight (Tensor): (k, m), or a view of that shape.
    bias (Tensor | None): (m,).
    RETURNS (Tensor): (n, m).
    """
    if use_onednn(x, weight):
        return torch.ops.mkldnn._linear_pointwise(x, weight.t(), bias, "none", [], "")
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def step_kernel(weight: Tensor, n_rows: int, *, limit: float | None = None) -> Kernel:
    """Make a kernel that will be called many times, with n_rows rows each time. Packing
    the weight takes about as long as one call.

    weight (Tensor): (n_in, n_out).
    limit (float | None): Clip the results to +- this; None to not clip.
    """
    packed = use_onednn(weight.new_empty(n_rows, 0), weight)
    return (PackedKernel if packed else PlainKernel)(weight, limit=limit)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return matmul(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        d_x = matmul(d, weight.t()) if ctx.needs_input_grad[0] else None
        return d_x, matmul(x.t(), d), d.sum(0)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute x weight + bias, with gradients; shapes as for matmul."""
    if not torch.is_autocast_enabled(x.device.type) and use_onednn(x, weight):
        return _Linear.apply(x, weight, bias)
    return torch.addmm(bias, x, weight)
