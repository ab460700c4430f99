"""Read how large the pages of a Parquet file become when they are decompressed.

Readers allocate what the head of a page says, so that it is a real limit. What the end
of the file says about its columns is not. pyarrow does not show the heads.
"""

from io import BufferedIOBase
from typing import Any

# Types of fields in Thrift's compact protocol.
STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, STRUCT = (*range(9), 12)
MAX_FIELD = 100  # the formats have fields up to about 10


def measure_column(file: BufferedIOBase, column: Any) -> int:
    """Add up the sizes that the heads of the pages of a column say.

    file (BufferedIOBase): The file. Its position changes.
    column (Any): The metadata of the column in a row group, as pyarrow has it.
    """
    position = column.data_page_offset
    if column.dictionary_page_offset:
        position = min(position, column.dictionary_page_offset)
    end = position + column.total_compressed_size
    size = 0
    while position < end:
        file.seek(position)
        page_size, compressed_size = _read_head(file)
        size += page_size
        position = file.tell() + compressed_size
    return size


def _read_head(file: BufferedIOBase) -> tuple[int, int]:
    """Read the head of a page up to its end. Raise ValueError for anything that readers
    could understand in several ways.

    RETURNS (tuple[int, int]): The size of the page, and its size in the file.
    """
    sizes: dict[int, int] = {}
    fields = [0]  # the last field of the head, and of each structure that is open
    while fields:
        head = _read(file, 1)[0]
        step, kind = head >> 4, head & 15
        if kind == STOP:
            fields.pop()
            continue
        fields[-1] += step
        if not step or fields[-1] > MAX_FIELD:
            raise ValueError("found the head of a page with unordered fields")
        if kind in (I16, I32, I64):
            number = _read_number(file)
            if len(fields) == 1 and kind == I32:
                sizes[fields[-1]] = (number >> 1) ^ -(number & 1)
        elif kind in (BYTE, DOUBLE):
            _read(file, 1 if kind == BYTE else 8)
        elif kind == BINARY:
            _read(file, _read_number(file))
        elif kind == STRUCT:
            fields.append(0)
        elif kind not in (TRUE, FALSE):
            raise ValueError("found the head of a page with an unknown field")
    if not all(0 <= sizes.get(field, -1) < 2**31 for field in (2, 3)):
        raise ValueError("found the head of a page without its sizes")
    return sizes[2], sizes[3]


def _read_number(file: BufferedIOBase) -> int:
    """Read a number of which each byte has 7 bits, the lowest first."""
    number = 0
    for shift in range(0, 70, 7):
        (byte,) = _read(file, 1)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise ValueError("found the head of a page with an endless number")


def _read(file: BufferedIOBase, size: int) -> bytes:
    # Heads have at most some statistics, and a size may be wrong.
    data = file.read(size) if size <= 2**24 else b""
    if len(data) != size:
        raise ValueError("found the head of a page that is cut")
    return data
