"""Load and save arrays as safetensors files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from ...fingerprints import fill
from ..errors import SourceError
from .small_files import check_file

PIECE = 2**21  # bytes that are read at once
DTYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8}


def load_arrays(
    path: Path, handle_piece: Callable[[memoryview], Any] = lambda piece: None
) -> dict[str, np.ndarray]:
    """Load a file of weights. Raise SourceError if that fails.

    handle_piece (Callable[[memoryview], Any]): Is called with each piece of the file as
        soon as it has been read.
    RETURNS (dict[str, np.ndarray]): The arrays, as views of one buffer. safetensors
        only checks the file: while it copied arrays, other threads would have to wait.
    """
    buffer = np.empty(check_file(path, "weights"), dtype=np.uint8)
    n_read = 0
    try:
        with path.open("rb", buffering=0) as file:
            for start in range(0, len(buffer), PIECE):
                piece = buffer.data[start : start + PIECE]
                n_piece = fill(file, piece)
                handle_piece(piece[:n_piece])
                n_read += n_piece
        with safe_open(path, framework="numpy"):  # raises if the header does not fit
            pass
    except (SafetensorError, OSError, RuntimeError) as error:
        raise SourceError(
            f"{path}: found no complete safetensors file ({error})"
        ) from None
    if n_read < len(buffer):
        raise SourceError(f"{path}: found {n_read} bytes; expected {len(buffer)}")
    try:
        return _view_arrays(buffer, path)
    except (KeyError, TypeError, ValueError) as error:  # replaced while we read it
        raise SourceError(f"{path}: found another header ({error!r})") from None


def _view_arrays(buffer: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    """Find the arrays in the contents of a safetensors file. If they are damaged, many
    kinds of errors are raised."""
    start = 8 + int.from_bytes(buffer[:8].tobytes(), "little")
    header = json.loads(buffer[8:start].tobytes())
    header.pop("__metadata__", None)
    # Overlapping arrays would take more memory than the file once they are copied.
    end = 0
    for first, last in sorted(entry["data_offsets"] for entry in header.values()):
        if first < end:
            raise SourceError(
                f"{path}: found arrays that overlap; expected each in its own place"
            )
        end = last
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] not in DTYPES:
            raise SourceError(
                f"{path}: found '{name}' to be of type {entry['dtype']}; expected one "
                f"of {', '.join(DTYPES)}"
            )
        first, last = (start + offset for offset in entry["data_offsets"])
        array = buffer[first:last].view(DTYPES[entry["dtype"]])
        # Other programs may have written an array to any place.
        array = array if array.flags.aligned else array.copy()
        arrays[name] = array.reshape(entry["shape"])
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


def arrays_from_bytes(
    contents: bytes | memoryview, path: Path
) -> dict[str, np.ndarray]:
    """Load the result of arrays_to_bytes.

    path (Path): The file to name in error messages.
    RETURNS (dict[str, np.ndarray]): The arrays, as views of one copy of the contents.
    """
    try:
        return _view_arrays(np.frombuffer(contents, dtype=np.uint8).copy(), path)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{path}: found no complete weights ({error!r})") from None


def _contiguous(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    # safetensors writes the memory of an array, whatever its strides are.
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}
