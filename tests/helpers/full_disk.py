"""Imitate a full disk."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(n_bytes):
    """Let no file of this process grow beyond a size. Python ignores the signal that
    comes with it, so that writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
