"""Linear maps for inference on a CPU: plain, packed and int8.

All are made of a weight W (n_in, n_out) and map x (n, n_in) to a new tensor (n, n_out):
x W + b, then, where asked for, times `scale` (n_out,), clipped to +-`limit`, or through
a sigmoid."""

from collections.abc import Callable

import torch
from torch import Tensor

Kernel = Callable[[Tensor], Tensor]
PACK_FOR_ROWS = 128  # the batch size that packed weights are laid out for


def gate_scale(bias: Tensor) -> Tensor:
    """What an LSTM's gates are multiplied by so that one sigmoid serves all four:
    tanh(x) is 2 * sigmoid(2x) - 1, and a sigmoid is a third of the work.

    bias (Tensor): Theirs, (4 * dim,).
    RETURNS (Tensor): 2 for the candidate and 1 elsewhere, (4 * dim,).
    """
    scale = torch.ones_like(bias)
    scale.chunk(4)[1].fill_(2)
    return scale


class PlainKernel:
    """What every build of torch can do; the weight is used as it is."""

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
        y = self.product(x)
        if self.bias is not None:
            y += self.bias
        if self.scale is not None:
            y *= self.scale
        if self.limit is not None:
            y.clamp_(-self.limit, self.limit)
        return y.sigmoid_() if self.sigmoid else y

    def product(self, x: Tensor) -> Tensor:
        return x @ self.weight


def padded_rows(n: int) -> int:
    """RETURNS (int): n or a bit more, out of a hundred or so different numbers."""
    step = 1 if n <= 16 else 4 if n <= 128 else 16 if n <= 512 else 64
    return -(-n // step) * step


class PackedKernel:
    """oneDNN's GEMM on weights laid out for it once, and all the rest fused into it.
    These operators are private to torch: `supported` asks for them. For each number of
    rows they keep a program in memory, so that rows are padded to few numbers."""

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
        if not torch.backends.mkldnn.is_available():
            return False
        x, weight, bias = torch.eye(2), torch.eye(2), torch.ones(2)
        try:
            for more in ({"limit": 1.5}, {"sigmoid": True, "scale": torch.ones(2)}):
                expected = PlainKernel(weight, bias, **more)(x)
                found = cls(weight, bias, **more)(x)
                if not torch.allclose(found, expected):
                    return False
        except (RuntimeError, AttributeError, NotImplementedError):
            return False
        return True


_packed: bool | None = None


def has_packed_kernels() -> bool:
    """Whether this build of torch has the operators of PackedKernel."""
    global _packed
    if _packed is None:
        _packed = PackedKernel.supported()
    return _packed


def fast_kernel(
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    scale: Tensor | None = None,
    limit: float | None = None,
    sigmoid: bool = False,
) -> Kernel:
    """RETURNS (Kernel): The fastest exact kernel of this build of torch."""
    make = PackedKernel if has_packed_kernels() else PlainKernel
    return make(weight, bias, scale=scale, limit=limit, sigmoid=sigmoid)
