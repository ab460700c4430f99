"""Convert between the arrays of a biLM's engine and Thinc arrays on the same device,
without a copy."""

from typing import TYPE_CHECKING, Any

import numpy as np
from thinc.api import Ops, torch2xp, xp2torch

if TYPE_CHECKING:
    import torch


def to_array(ops: Ops, array: Any) -> Any:
    """Return an array of the ops that shares the memory of an array or a tensor."""
    if isinstance(array, np.ndarray):
        return ops.asarray(array)  # type: ignore[arg-type]
    return torch2xp(array.detach(), ops=ops)


def to_tensor(array: Any, device: "torch.device") -> "torch.Tensor":
    """Return a tensor that shares the array's memory."""
    return xp2torch(array, device=device)
