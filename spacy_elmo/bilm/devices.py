"""Copy data to a device without waiting for the device."""

import numpy as np
import torch
from torch import Tensor


def to_device(values: np.ndarray | Tensor, device: torch.device | str) -> Tensor:
    """Copy values to a device. A plain `.to(device)` would wait until a GPU has
    finished all its queued work."""
    tensor = torch.as_tensor(values)
    # This is safe because our memory is not pinned: then torch has read all values when
    # the call returns.
    return tensor.to(device, non_blocking=torch.device(device).type == "cuda")
