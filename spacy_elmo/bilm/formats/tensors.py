"""Load and save arrays as safetensors files."""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save, save_file

from ..errors import SourceError
from .small_files import check_file

DTYPES = ("F32", "F16", "I8")


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Load a file of weights. Raise SourceError if that fails."""
    arrays = {}
    check_file(path, "weights")
    try:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():
                dtype = file.get_slice(name).get_dtype()
                if dtype not in DTYPES:
                    raise SourceError(
                        f"{path}: found '{name}' to be of type {dtype}; expected one "
                        f"of {', '.join(DTYPES)}"
                    )
                arrays[name] = file.get_tensor(name)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise SourceError(
            f"{path}: found no complete safetensors file ({error})"
        ) from None
    return arrays


def save_arrays(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Write a safetensors file. Raise OSError if that fails, such as on a full disk."""
    try:
        save_file(_contiguous(arrays), path)
    except SafetensorError as error:  # not a subclass of OSError
        raise OSError(f"{path}: cannot be written ({error})") from None


def arrays_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the contents that a safetensors file of these arrays has."""
    return save(_contiguous(arrays))


def arrays_from_bytes(contents: bytes, path: Path) -> dict[str, np.ndarray]:
    """Load the result of arrays_to_bytes.

    path (Path): The file to name in error messages.
    """
    try:
        return load(contents)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path}: found no complete weights ({error!r})") from None


def _contiguous(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    # safetensors writes the memory of an array, whatever its strides are.
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}
