"""Weights on disk in fewer bits. In memory they are always float32."""

import torch
from torch import Tensor

DTYPES = ("float32", "float16", "int8")
SCALES = ".scales"  # after the name of a tensor that is stored in 8 bits


def pack(tensors: dict[str, Tensor], dtype: str) -> dict[str, Tensor]:
    """RETURNS (dict[str, Tensor]): Tensors to be written.

    dtype (str): "float32" as they are, "float16", or "int8": the largest matrices
        (more than half as large as the largest one) as whole numbers of -127 to 127
        with a scale for each column, the rest in float16.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(DTYPES)}")
    if dtype == "float32":
        return tensors
    packed = {}
    # Of a biLM these are the weights of its LSTMs. Errors in what words are read with
    # would reach all layers, for little space.
    sizes = [tensor.numel() for tensor in tensors.values() if tensor.dim() == 2]
    limit = max(sizes, default=0) / 2
    for name, tensor in tensors.items():
        if dtype == "int8" and tensor.dim() == 2 and tensor.numel() > limit:
            scales = tensor.abs().amax(0, keepdim=True).clamp(min=1e-12) / 127
            packed[name] = (tensor / scales).round().to(torch.int8)
            packed[name + SCALES] = scales.float()
        else:
            packed[name] = tensor.to(torch.float16)
    return packed


def unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """RETURNS (dict[str, Tensor]): In float32, whatever they were stored in."""
    plain = {}
    for name, tensor in tensors.items():
        if not name.endswith(SCALES):
            scales = tensors.get(name + SCALES)
            plain[name] = tensor.float() if scales is None else tensor * scales
    return plain
