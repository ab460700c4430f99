"""Functions for code that computes with numpy arrays or torch tensors, whichever the
engine uses. torch is imported only for tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def new_empty(shape: Sequence[int], like: Any) -> Any:
    """Make an uninitialized array of the type, dtype and device of another."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype)
    return like.new_empty(shape)


def new_zeros(shape: Sequence[int], like: Any) -> Any:
    """Make an array of zeros of the type, dtype and device of another."""
    if isinstance(like, np.ndarray):
        return np.zeros(shape, like.dtype)
    return like.new_zeros(shape)


def stack(arrays: Sequence[Any]) -> Any:
    """Join arrays of one type along a new first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays)
    import torch

    return torch.stack(list(arrays))


def concatenate(arrays: Sequence[Any]) -> Any:
    """Join arrays of one type along their first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    import torch

    return torch.cat(list(arrays))


def as_index(numbers: Any, like: Any) -> Any:
    """Convert whole numbers to an index for another array, on its device."""
    numbers = np.asarray(numbers, dtype=np.int64)
    if isinstance(like, np.ndarray):
        return numbers
    from .devices import to_device

    return to_device(numbers, like.device)


def as_floats(values: Any, like: Any) -> Any:
    """Convert numbers to an array of the type, dtype and device of another."""
    if isinstance(like, np.ndarray):
        return np.asarray(values, like.dtype)
    from .devices import to_device

    return to_device(np.asarray(values, np.float32), like.device).to(like.dtype)


def to_numpy(array: Any) -> np.ndarray:
    """Convert an array to a float32 array on the host, without a copy if it is one."""
    if isinstance(array, np.ndarray):
        return array
    return array.detach().float().cpu().numpy()


def to_layer_arrays(layers: Any) -> np.ndarray:
    """Convert layers (n_tokens, n_layers + 1, width) to a float32 array (n_layers + 1,
    n_tokens, width). It is a copy, so that keeping it does not keep the whole batch in
    memory."""
    if isinstance(layers, np.ndarray):
        return layers.transpose(1, 0, 2).copy()
    import torch

    layers = layers.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    return layers.float().cpu().numpy()
