"""Create HDF5 files. The HDF5 library crashes the process if it cannot write, such as
on a full disk; with this module, it raises an error instead."""

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def create_hdf5(
    path: Path, attributes: Mapping[str, Any] | None = None
) -> Iterator[Callable[[str, Any], None]]:
    """Create an HDF5 file, or replace the one that is there.

    attributes (Mapping[str, Any] | None): The attributes of the file as a whole.
    YIELDS (Callable[[str, Any], None]): Adds an array to the file under a name, and
        raises OSError if the file cannot be written.
    """
    import h5py

    with path.open("w+b", buffering=0) as raw:
        guard = _Guard(raw)

        def add(name: str, array: Any) -> None:
            file.create_dataset(name, data=array)
            guard.check()

        with h5py.File(guard, "w") as file:
            file.attrs.update(attributes or {})
            yield add
        guard.check()


class _Guard(io.RawIOBase):
    """A file that never fails: it keeps the first error and ignores what is written
    after it, so that the HDF5 library can close its file without crashing.

    raw (io.FileIO): The file to read and write.
    """

    def __init__(self, raw: io.FileIO) -> None:
        self.raw = raw
        self.error: OSError | None = None

    def check(self) -> None:
        """Raise the error that was kept."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self.error is None and done < len(view):
                done += self.raw.write(view[done:])
        except OSError as error:
            self.error = error
        return len(view)

    def readinto(self, buffer: Any) -> int:
        try:
            return self.raw.readinto(buffer)
        except OSError as error:
            self.error = self.error or error
            return 0

    def truncate(self, size: int | None = None) -> int:
        try:
            if self.error is None:
                self.raw.truncate(size)
        except OSError as error:
            self.error = error
        return size or 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.raw.seek(offset, whence)

    def tell(self) -> int:
        return self.raw.tell()
