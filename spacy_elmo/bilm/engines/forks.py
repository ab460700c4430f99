"""Let a process fork only while no thread computes with a biLM.

OpenBLAS and oneDNN have locks of their own. If a process forks while one of its threads
holds such a lock, it stays locked in the new process, whose first product then waits
forever. So a fork waits until no call runs, and a call that begins when no other one
runs waits for the fork.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT = 60.0  # seconds; then the fork goes ahead


class _Calls:
    """Counts the calls that compute, and the forks that wait for them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.n_calls = 0
        self.n_forks = 0

    def begin(self) -> None:
        with self.changed:
            if not self.n_calls:
                # A call within another one must not wait: it would wait for the fork,
                # and the fork for the outer call.
                self.changed.wait_for(lambda: not self.n_forks)
            self.n_calls += 1

    def end(self) -> None:
        with self.changed:
            self.n_calls -= 1
            self.changed.notify_all()

    def begin_fork(self) -> None:
        """Wait until no call runs."""
        with self.changed:
            self.n_forks += 1
            self.changed.wait_for(lambda: not self.n_calls, LONGEST_WAIT)

    def end_fork(self) -> None:
        with self.changed:
            self.n_forks -= 1
            self.changed.notify_all()


_calls = _Calls()


@contextmanager
def no_fork() -> Iterator[None]:
    """Make forks by other threads wait until the block ends."""
    calls = _calls
    calls.begin()
    try:
        yield
    finally:
        calls.end()


def _after_fork() -> None:
    """Start again in a forked process, which has none of the other threads."""
    global _calls
    _calls = _Calls()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _calls.begin_fork(),
        after_in_parent=lambda: _calls.end_fork(),
        after_in_child=_after_fork,
    )
