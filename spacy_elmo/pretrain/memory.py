"""The memory of a process that trains on a CPU."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
NEVER = 2**30  # bytes, more than any array of a step


def keep_memory() -> bool:
    """Have arrays that are freed used again by the next step. By default the C library
    gives large ones back to the system each time and gets them again full of zeros,
    page by page, which took a tenth of the processor's time in a training.

    RETURNS (bool): Whether this C library can be told so; glibc can.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all([mallopt(key, NEVER) for key in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD)])
