"""From the host to a device without waiting for it."""

import numpy as np
import torch
from torch import Tensor


def to_device(values: np.ndarray | Tensor, device: torch.device | str) -> Tensor:
    """RETURNS (Tensor): The values on a device. A GPU takes them in its turn: a plain
    `.to(device)` would first wait until all it has been given to do is done."""
    tensor = torch.as_tensor(values)
    # Memory that is not pinned, as ours, has been read when this returns.
    return tensor.to(device, non_blocking=torch.device(device).type == "cuda")
