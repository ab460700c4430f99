"""Tell whether the chunks of an HDF5 array hold what the array declares. Where a chunk
is missing, the HDF5 library returns zeros. It allocates memory for whatever comes out
of a compressed chunk, which may be a thousand times the size of the chunk."""

import math
import zlib
from typing import Any

DEFLATE, SHUFFLE, FLETCHER32, LZF = 1, 2, 3, 32000  # as HDF5 numbers its filters
# Beside its numbers, a chunk may have a checksum and what the compression adds to
# numbers that it cannot make smaller.
EXTRA = 64
# An array that can grow may have chunks that are larger than itself, up to this size.
MAX_CHUNK = 2**20


def n_filters(array: Any) -> int:
    """Return the number of filters, such as a compression, that the array has."""
    return len(_filters(array))


def describe_filters(array: Any) -> str | None:
    """Say what is wrong with the filters of an array; None if it is gzip or lzf, with a
    shuffle and a checksum or without."""
    filters = _filters(array)
    numbers = [number for number, *_ in filters]
    compressions = [n for n in numbers if n not in (SHUFFLE, FLETCHER32)]
    if len(set(numbers)) == len(numbers) and compressions in ([], [DEFLATE], [LZF]):
        return None
    names = ", ".join(name.decode("utf8", "replace")[:40] for *_, name in filters)
    return (
        f"compressed ({names}); expected gzip or lzf, or plain numbers, as h5repack "
        "-f NONE writes"
    )


def describe_missing(array: Any) -> str | None:
    """Say how many chunks an array has; None if all are there."""
    expected = math.prod(-(-n // m) for n, m in zip(array.shape, array.chunks))
    found = array.id.get_num_chunks()
    return None if found == expected else f"in {found:,} chunks; expected {expected:,}"


def describe_chunks(array: Any) -> str | None:
    """Say what is wrong with the chunks of an array whose filters are right; None if
    all are there and each holds as many bytes as it declares."""
    n_bytes = math.prod(array.chunks) * array.dtype.itemsize
    if n_bytes > max(array.size * array.dtype.itemsize, MAX_CHUNK):
        return f"in chunks of {n_bytes:,} bytes; expected no more than it has itself"
    missing = describe_missing(array)
    if missing:
        return missing
    filters = _filters(array)
    numbers = [number for number, *_ in filters]
    limit = n_bytes + n_bytes // 100 + EXTRA
    if any(value > limit for _, _, values, _ in filters for value in values[2:]):
        return "compressed for larger chunks than it has; expected their size"
    for place in array.iter_chunks():
        start = tuple(part.start for part in place)
        size = array.id.get_chunk_info_by_coord(start).size
        if size <= limit:
            skipped, chunk = array.id.read_direct_chunk(start)
            used = [n for i, n in enumerate(numbers) if not skipped >> i & 1]
            size = _unpacked_size(chunk, used, limit)
        if size > limit:
            return f"of chunks that hold more than {n_bytes:,} bytes; expected no more"
    return None


def _filters(array: Any) -> list[tuple[int, int, tuple[int, ...], bytes]]:
    """List the filters of an array: number, flags, parameters and name."""
    plist = array.id.get_create_plist()
    return [plist.get_filter(i) for i in range(plist.get_nfilters())]


def _unpacked_size(chunk: bytes, used: list[int], limit: int) -> int:
    """Return how many bytes come out of a chunk, or a number above the limit."""
    if DEFLATE in used:
        return len(zlib.decompressobj().decompress(chunk, limit + 1))
    if LZF not in used:
        return len(chunk)
    size = place = 0
    end = len(chunk) - (4 if FLETCHER32 in used else 0)
    while place < end:
        control = chunk[place]
        if control < 32:  # control + 1 bytes follow, which are not compressed
            size += control + 1
            place += control + 2
        else:  # a copy of earlier bytes: its length, and how far back they are
            length = control >> 5
            if length == 7:
                place += 1
                length += chunk[place]
            size += length + 2
            place += 2
    return size
