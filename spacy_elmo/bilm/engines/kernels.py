"""Kernels: linear maps with fixed weights for inference on a CPU, plain or packed.

A kernel has a weight W (n_in, n_out) and maps x (n, n_in) to a new tensor (n, n_out):
x W + b. If it was made with `scale` (n_out,), it then multiplies by it. If it was made
with `limit` or `sigmoid`, it then clips to +-limit or applies a sigmoid."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

Kernel = Callable[[Tensor], Tensor]
PACK_FOR_ROWS = 128  # oneDNN chooses the layout of weights for this number of rows


def gate_scale(bias: Tensor) -> Tensor:
    """Make the factors to multiply an LSTM's gates by before a sigmoid, so that the
    candidate needs no tanh: tanh(x) is 2 * sigmoid(2x) - 1. A sigmoid takes a third of
    the time of a tanh, and one call computes all four gates.

    bias (Tensor): The bias of the gates, (4 * dim,).
    RETURNS (Tensor): 2 for the candidate and 1 elsewhere, (4 * dim,).
    """
    scale = torch.ones_like(bias)
    scale.chunk(4)[1].fill_(2)
    return scale


class PlainKernel:
    """Uses the weight as it is, with operators that every build of torch has."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        scale: Tensor | None = None,
        limit: float | None = None,
        sigmoid: bool = False,
    ) -> None:
        self.weight = weight
        self.bias = bias
        self.scale = scale
        self.limit = limit
        self.sigmoid = sigmoid

    def __call__(self, x: Tensor) -> Tensor:
        y = self.matmul(x)
        if self.bias is not None:
            y += self.bias
        if self.scale is not None:
            y *= self.scale
        if self.limit is not None:
            y.clamp_(-self.limit, self.limit)
        return y.sigmoid_() if self.sigmoid else y

    def matmul(self, x: Tensor) -> Tensor:
        return x @ self.weight


def padded_rows(n: int) -> int:
    """Round a row count up, so that few different counts occur: about a hundred for up
    to 2,500 rows."""
    step = 1 if n <= 16 else 4 if n <= 128 else 16 if n <= 512 else 64
    return -(-n // step) * step


class PackedKernel:
    """Uses oneDNN's matrix product. The weights are packed once into oneDNN's layout,
    and everything after the product is fused into it.

    These operators are private to torch, so `supported` tries them first. oneDNN
    compiles and keeps a program for each row count, so inputs are padded to a few
    different counts."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        scale: Tensor | None = None,
        limit: float | None = None,
        sigmoid: bool = False,
    ) -> None:
        rows = weight.t().contiguous()
        if scale is not None:
            rows *= scale[:, None]
            bias = None if bias is None else bias * scale
        self.weight = torch.ops.mkldnn._reorder_linear_weight(rows, PACK_FOR_ROWS)
        self.bias = bias
        self.after = "sigmoid" if sigmoid else "none" if limit is None else "hardtanh"
        self.limits = [] if limit is None else [-float(limit), float(limit)]

    def __call__(self, x: Tensor) -> Tensor:
        n_rows = len(x)
        missing = padded_rows(n_rows) - n_rows
        if missing:
            x = torch.nn.functional.pad(x, (0, 0, 0, missing))
        y = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, self.after, self.limits, ""
        )
        return y[:n_rows] if missing else y

    @classmethod
    def supported(cls) -> bool:
        """Return whether torch has these operators and they compute correctly."""
        if not torch.backends.mkldnn.is_available():
            return False
        # The caller's default dtype and device have no influence.
        x = weight = torch.eye(2, dtype=torch.float32, device="cpu")
        bias = scale = torch.ones_like(x[0])
        try:
            for more in ({"limit": 1.5}, {"sigmoid": True, "scale": scale}):
                expected = PlainKernel(weight, bias, **more)(x)
                found = cls(weight, bias, **more)(x)
                if not torch.allclose(found, expected):
                    return False
        except (RuntimeError, AttributeError, NotImplementedError):
            return False
        return True


@cache
def has_packed_kernels() -> bool:
    """Return whether PackedKernel works with this build of torch. Tried only once."""
    return PackedKernel.supported()


def fast_kernel(
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    scale: Tensor | None = None,
    limit: float | None = None,
    sigmoid: bool = False,
) -> Kernel:
    """Make the fastest exact kernel that this build of torch has."""
    make = PackedKernel if has_packed_kernels() else PlainKernel
    return make(weight, bias, scale=scale, limit=limit, sigmoid=sigmoid)
