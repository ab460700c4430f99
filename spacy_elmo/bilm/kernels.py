"""Linear maps for inference on a CPU: plain, packed and int8.

All are called with x (n, n_in) and give x W + b, clipped where a limit was set,
as a new tensor (n, n_out)."""

from typing import Callable, Optional

import torch
from torch import Tensor

from .layers import clip

Kernel = Callable[[Tensor], Tensor]
PACK_FOR_ROWS = 128  # the batch size that packed weights are laid out for


class PlainKernel:
    """What every build of torch can do; the weight is used as it is."""

    def __init__(
        self, weight: Tensor, bias: Optional[Tensor], limit: Optional[float]
    ) -> None:
        self.weight = weight
        self.bias = bias
        self.limit = limit

    def __call__(self, x: Tensor) -> Tensor:
        if self.bias is None:
            return clip(x @ self.weight, self.limit)
        return clip(torch.addmm(self.bias, x, self.weight), self.limit)


class PackedKernel:
    """oneDNN's GEMM on weights laid out for it once, with the clip fused in. These
    operators are private to torch: `supported` asks for them."""

    def __init__(
        self, weight: Tensor, bias: Optional[Tensor], limit: Optional[float]
    ) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(
            weight.t().contiguous(), PACK_FOR_ROWS
        )
        self.bias = bias
        self.after = "none" if limit is None else "hardtanh"
        self.limits = [] if limit is None else [-float(limit), float(limit)]

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, self.after, self.limits, ""
        )

    @classmethod
    def supported(cls) -> bool:
        if not torch.backends.mkldnn.is_available():
            return False
        try:
            kernel = cls(torch.eye(2), torch.ones(2), 1.5)
            return kernel(torch.eye(2)).tolist() == [[1.5, 1.0], [1.0, 1.5]]
        except (RuntimeError, AttributeError, NotImplementedError):
            return False


_packed: Optional[bool] = None


def fast_kernel(
    weight: Tensor, bias: Optional[Tensor] = None, limit: Optional[float] = None
) -> Kernel:
    """RETURNS (Kernel): The fastest exact kernel of this build of torch."""
    global _packed
    if _packed is None:
        _packed = PackedKernel.supported()
    return (PackedKernel if _packed else PlainKernel)(weight, bias, limit)
