"""Store weights on disk in fewer bits. In memory they are always float32."""

import torch
from torch import Tensor

DTYPES = ("float32", "float16", "int8")
SCALES = ".scales"  # appended to the name of a tensor that is stored in 8 bits


def quantize(tensors: dict[str, Tensor], dtype: str) -> dict[str, Tensor]:
    """Convert tensors to the types in which they are written.

    dtype (str): "float32" (unchanged), "float16", or "int8". With "int8", matrices with
        more than half as many elements as the largest one become whole numbers from
        -127 to 127 with one scale per column; the rest becomes float16.
    RETURNS (dict[str, Tensor]): The tensors by name. The scales (1, n_columns) of a
        tensor in 8 bits have its name with SCALES appended.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(DTYPES)}")
    if dtype == "float32":
        return tensors
    stored = {}
    # In a biLM the largest matrices are those of the LSTMs. Encoder weights stay in
    # float16: an error there reaches every layer, and they are small.
    sizes = [tensor.numel() for tensor in tensors.values() if tensor.dim() == 2]
    limit = max(sizes, default=0) / 2
    for name, tensor in tensors.items():
        if dtype == "int8" and tensor.dim() == 2 and tensor.numel() > limit:
            scales = tensor.abs().amax(0, keepdim=True).clamp(min=1e-12) / 127
            stored[name] = (tensor / scales).round().to(torch.int8)
            stored[name + SCALES] = scales.float()
        else:
            stored[name] = tensor.to(torch.float16)
    return stored


def dequantize(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored tensors back to float32."""
    plain = {}
    for name, tensor in tensors.items():
        if not name.endswith(SCALES):
            scales = tensors.get(name + SCALES)
            plain[name] = tensor.float() if scales is None else tensor * scales
    return plain
