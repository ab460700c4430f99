"""Convert between torch tensors and Thinc arrays on the same device, without a copy."""

from typing import Any

import torch
from thinc.api import Ops, torch2xp, xp2torch


def to_array(ops: Ops, tensor: torch.Tensor) -> Any:
    """Return an array of the ops that shares the tensor's memory."""
    return torch2xp(tensor.detach(), ops=ops)


def to_tensor(array: Any, device: torch.device) -> torch.Tensor:
    """Return a tensor that shares the array's memory."""
    return xp2torch(array, device=device)
