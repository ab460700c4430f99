"""Read arrays from HDF5 files that may be damaged or malicious. The sizes that a file
declares are compared with its real size before memory is allocated."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...fingerprints import checksum_bytes, checksum_file
from ..errors import SourceError
from .hdf5_chunks import (
    describe_chunks,
    describe_filters,
    describe_missing,
    n_filters,
)

CHECKSUM = "spacy_elmo_checksum"
MAX_CHECKSUM = 1000  # bytes
# The arrays may be MAX_RATIO times as large as their file, plus MAX_SMALL bytes. Most
# weights are less than twice as large, and perhaps 10 times if they are mostly zeros.
MAX_RATIO, MAX_SMALL = 20, 2**26


class HDF5Arrays:
    """The arrays of an open HDF5 file by name.

    Links and arrays in other files are refused: they could read any file of the machine
    into the weights. Arrays may be compressed, but not much.

    path (Path): The file, for its size and for error messages.
    file (Any): The h5py.File.
    """

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        self.file = file
        self.left = path.stat().st_size  # bytes that arrays may still have in the file
        self.left_to_declare = MAX_RATIO * self.left + MAX_SMALL

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
        """Raise SourceError unless an array consists of floats that are stored in this
        file, and declares no more data than the file can hold."""
        array = self[key]
        n_bytes = array.size * array.dtype.itemsize
        n_stored = array.id.get_storage_size()
        self.left -= n_stored if n_filters(array) else max(n_bytes, n_stored)
        self.left_to_declare -= n_bytes
        more = f"of {n_bytes:,} bytes, more than the file has; expected no more"
        if array.dtype.kind != "f":
            found: str | None = f"of type {array.dtype}; expected float32"
        elif array.external or array.is_virtual:
            found = "stored in another file; expected it in this one"
        elif self.left < 0 or self.left_to_declare < 0:
            found = more
        elif n_filters(array):
            found = describe_filters(array) or describe_chunks(array)
        elif n_stored < n_bytes:
            found = more
        else:
            found = describe_missing(array) if array.chunks else None
        if found:
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
        if CHECKSUM not in self.file.attrs:
            return
        if self._attribute(CHECKSUM) != checksum_arrays(arrays)[CHECKSUM]:
            raise SourceError(
                f"{self.path}: found arrays that do not match its attribute "
                f"'{CHECKSUM}'; expected the file as it was written (after a change by "
                "hand, delete that attribute)"
            )

    def check_beside(self, kind: str, path: Path) -> None:
        """Raise SourceError if a file that was saved together with this one has changed
        since.

        kind (str): The name of the file for checksum_beside.
        path (Path): Where it is, or should be.
        """
        name = f"{CHECKSUM}_{kind}"
        if name not in self.file.attrs:
            return
        has_file = path.exists()
        checksum = checksum_file(path) if has_file else checksum_bytes(b"")
        if self._attribute(name) != checksum.encode():
            found = "other contents than were" if has_file else "no file, but one was"
            raise SourceError(
                f"{path}: found {found} saved with {self.path.name}, by its attribute "
                f"'{name}'; expected both as they were written (after a change by "
                "hand, delete that attribute)"
            )

    def _attribute(self, name: str) -> Any:
        """Return an attribute of the file; None if it is too large for a checksum."""
        attributes = self.file.attrs
        if attributes.get_id(name).get_storage_size() > MAX_CHECKSUM:
            return None
        found = attributes[name]
        return found if isinstance(found, bytes) else None


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


def checksum_beside(files: dict[str, bytes]) -> dict[str, np.bytes_]:
    """Compute the checksums of files that belong to a file of arrays.

    files (dict[str, bytes]): The contents of each by any name; b"" if there is none.
    RETURNS (dict[str, np.bytes_]): The attributes that hold the checksums.
    """
    return {
        f"{CHECKSUM}_{kind}": np.bytes_(checksum_bytes(contents))
        for kind, contents in files.items()
    }
