"""Cache the layers of docs, so that they are not computed again in every epoch. The
cache is in memory up to a limit, then on disk."""

import os
import tempfile
import uuid
import warnings
import weakref
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from thinc.api import Ops
from thinc.types import Floats3d

KEY_BYTES = 16
INDEX = np.dtype(
    [
        ("key", f"V{KEY_BYTES}"),
        ("offset", "<i8"),
        ("n_tokens", "<i8"),
        ("checksum", "<u4"),
    ]
)


class Place(NamedTuple):
    """The place of a doc's layers on disk.

    path (Path): The file.
    offset (int): Where the layers begin in the file, in bytes.
    checksum (int): A checksum of the key and the layers.
    """

    path: Path
    offset: int
    n_tokens: int
    checksum: int


class LayerCache:
    """Maps keys of KEY_BYTES bytes to the layers that one biLM has computed for docs:
    float32 arrays, (n_tokens, n_layers + 1, width).

    ops (Ops): The ops of the arrays.
    shape (tuple[int, int]): The last two dimensions, (n_layers + 1, width).
    memory (int): How many bytes to keep in memory, on the device of the ops. Layers
        that do not fit are only written to disk.
    folder (Path | None): A folder to which all layers are written immediately, so that
        later runs find them there. None for a temporary folder, which gets only the
        layers that do not fit in memory.

    Two processes may share a folder. Each writes files with names that no other process
    uses, and reads the files that existed when it started.
    """

    def __init__(
        self,
        ops: Ops,
        shape: tuple[int, int],
        *,
        memory: int,
        folder: Path | None = None,
    ) -> None:
        self.ops = ops
        self.shape = shape
        self.free = memory
        self.persistent = folder is not None
        self._memory: dict[bytes, Floats3d] = {}
        self._disk: dict[bytes, Place] = {}
        self._folder = folder
        self._files: list[BinaryIO] = []
        self._process = os.getpid()
        self._full = False
        self._token_bytes = 4 * int(np.prod(shape))
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._load_index(folder)
            except OSError as error:
                self._give_up(error)

    def __len__(self) -> int:
        return len(self._memory.keys() | self._disk.keys())

    @property
    def n_on_disk(self) -> int:
        return len(self._disk)

    def get(self, key: bytes) -> Floats3d | None:
        """Return the layers of a key, or None if the cache does not have them. The
        caller must not change the array."""
        layers: Any = self._memory.get(key)
        if layers is None and key in self._disk:
            array = self._load(key)
            if array is not None:
                layers = self.ops.asarray(array)
                self._keep(key, layers)
        return layers

    def put(self, key: bytes, layers: Floats3d) -> None:
        """Add layers whose key is not in the cache."""
        kept = self._keep(key, layers)
        if (self.persistent or not kept) and key not in self._disk:
            self._write(key, layers)

    def _keep(self, key: bytes, layers: Floats3d) -> bool:
        if layers.nbytes > self.free:
            return False
        self.free -= layers.nbytes
        self._memory[key] = layers
        if isinstance(layers, np.ndarray):
            layers.flags.writeable = False  # docs may share the array
        return True

    def _load(self, key: bytes) -> Any:
        """Load layers from disk. If they are damaged, remove the entry and return
        None."""
        place = self._disk[key]
        try:
            with place.path.open("rb") as file:
                file.seek(place.offset)
                count = place.n_tokens * self._token_bytes // 4
                array = np.fromfile(file, dtype="<f4", count=count)
        except OSError:
            array = None
        if array is None or _checksum(key, array) != place.checksum:
            del self._disk[key]
            return None
        return array.reshape(place.n_tokens, *self.shape)

    def _write(self, key: bytes, layers: Floats3d) -> None:
        if self._full:
            return
        try:
            data, index = self._open()
            offset = data.tell()
            array = np.ascontiguousarray(self.ops.to_numpy(layers), dtype="<f4")
            data.write(array.tobytes())
            data.flush()
            # The index is written last, so that it lists only complete layers.
            checksum = _checksum(key, array)
            place = Place(Path(data.name), offset, len(layers), checksum)
            index.write(np.array([(key, *place[1:])], dtype=INDEX).tobytes())
            index.flush()
        except OSError as error:
            self._give_up(error)
        else:
            self._disk[key] = place

    def _give_up(self, error: OSError) -> None:
        """Write nothing more to disk, and warn."""
        self._full = True
        for file in self._files:
            with suppress(OSError):  # close() tries to write the rest again
                file.close()
        warnings.warn(
            f"elmo: the layer cache cannot be written ({error}); layers that are not "
            "in the cache will be computed each time",
            stacklevel=2,
        )

    def _open(self) -> tuple[BinaryIO, BinaryIO]:
        if self._process != os.getpid():
            # A forked process shares the positions in its parent's files: open others.
            self._process = os.getpid()
            self._files = []
        if not self._files:
            if self._folder is None:
                temporary = tempfile.TemporaryDirectory(prefix="spacy-elmo-layers-")
                weakref.finalize(self, temporary.cleanup)
                self._folder = Path(temporary.name)
            stem = self._folder / uuid.uuid4().hex
            for suffix in (".layers", ".index"):
                self._files.append(stem.with_suffix(suffix).open("wb"))
                weakref.finalize(self, self._files[-1].close)
        return self._files[0], self._files[1]

    def _load_index(self, folder: Path) -> None:
        """Read the index files in a folder, and skip entries with incomplete layers."""
        for path in sorted(folder.glob("*.index")):
            data = path.with_suffix(".layers")
            if not path.is_file() or not data.is_file():  # a pipe may have no end
                continue
            size = os.path.getsize(data)
            n_entries = os.path.getsize(path) // INDEX.itemsize
            entries = np.fromfile(path, dtype=INDEX, count=n_entries)
            for key, offset, n_tokens, checksum in entries.tolist():
                end = offset + n_tokens * self._token_bytes
                if 0 <= offset <= end <= size:
                    place = Place(data, offset, n_tokens, checksum)
                    self._disk[bytes(key)] = place


def _checksum(key: bytes, array: np.ndarray) -> int:
    return zlib.crc32(array.tobytes(), zlib.crc32(key))
