"""Write tensors to safetensors files."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a safetensors file. Raise OSError if that fails, such as on a full disk."""
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # not a subclass of OSError
        raise OSError(f"{path}: cannot be written ({error})") from None
