"""Read arrays from HDF5 files that may be damaged or made to do harm. What a file
announces is compared with its size before memory is taken."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...fingerprints import checksum_bytes
from ..errors import SourceError

CHECKSUM = "spacy_elmo_checksum"
MAX_CHECKSUM = 1000  # bytes


class HDF5Arrays:
    """The arrays of an open HDF5 file by name.

    Links, arrays in other files and compressed arrays are refused: the first two could
    read any file of the machine into the weights, and a few compressed bytes can fill
    the memory.

    path (Path): The file, for its size and for error messages.
    file (Any): The h5py.File.
    """

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        self.file = file
        self.left = path.stat().st_size  # bytes that arrays may still announce

    def __contains__(self, key: str) -> bool:
        return self._find(key) is not None

    def __getitem__(self, key: str) -> Any:
        return self._find(key)

    def _find(self, key: str) -> Any:
        import h5py

        node = self.file
        for part in key.split("/"):
            if not isinstance(node, h5py.Group):
                return None
            link = node.get(part, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise SourceError(
                    f"{self.path}: found a link in the place of '{key}'; expected an "
                    "array in this file"
                )
            node = node[part]
        return node

    def check(self, key: str) -> None:
        """Raise SourceError if an array has no numbers of its own in this file."""
        array = self[key]
        n_bytes = array.size * array.dtype.itemsize
        self.left -= n_bytes
        if array.dtype.kind != "f":
            found = f"of type {array.dtype}; expected float32"
        elif array.external or array.is_virtual:
            found = "stored in another file; expected it in this one"
        elif array.id.get_create_plist().get_nfilters():
            found = "compressed; expected plain numbers, as h5repack -f NONE writes"
        elif array.id.get_storage_size() < n_bytes or self.left < 0:
            found = f"of {n_bytes:,} bytes, more than the file has; expected no more"
        else:
            return
        raise SourceError(f"{self.path}: found '{key}' to be {found}")

    def read(self, key: str, view: np.ndarray, shape: tuple[int, ...]) -> None:
        """Read an array.

        view (np.ndarray): Where to put the numbers, with the same number of values.
        shape (tuple[int, ...]): The shape of the array in the file.
        """
        if view.flags.c_contiguous:
            self[key].read_direct(view.reshape(shape))  # without a temporary copy
        else:
            view[...] = self[key][()].reshape(view.shape)

    def check_checksum(self, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
        """Raise SourceError if arrays have changed since they were saved. Files of
        other programs, and of older releases, have no checksum to compare with.

        arrays (Iterable[tuple[str, np.ndarray]]): As for checksum_arrays.
        """
        attributes = self.file.attrs
        if CHECKSUM not in attributes:
            return
        if attributes.get_id(CHECKSUM).get_storage_size() <= MAX_CHECKSUM:
            found = attributes[CHECKSUM]
            if isinstance(found, bytes) and found == checksum_arrays(arrays)[CHECKSUM]:
                return
        raise SourceError(
            f"{self.path}: found other arrays than were saved, by its attribute "
            f"'{CHECKSUM}'; expected the file as it was written (after a change by "
            "hand, delete that attribute)"
        )


def checksum_arrays(arrays: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.bytes_]:
    """Compute the checksum of a file.

    arrays (Iterable[tuple[str, np.ndarray]]): The name in the file and the numbers of
        each array, always in the same order.
    RETURNS (dict[str, np.bytes_]): The attribute that holds the checksum, to be added
        to the file.
    """
    checksums = [
        (key, checksum_bytes(np.ascontiguousarray(array, dtype="<f4")))
        for key, array in arrays
    ]
    return {CHECKSUM: np.bytes_(checksum_bytes(json.dumps(checksums).encode()))}
