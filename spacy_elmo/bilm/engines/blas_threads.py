"""Control the threads of numpy's matrix products."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

ResultT = TypeVar("ResultT")
LONGEST_WAIT = 60.0  # seconds that a fork waits for our matrix products


@cache
def find_blas() -> Any:
    """Find the libraries that compute matrix products. This is done only once, because
    it takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """Counts the calls that limit the libraries to one thread. The limit holds for all
    threads of the process, so the last call to end restores it.

    A process must not fork during a matrix product: the locks of OpenBLAS would stay
    locked in the new process. So a fork waits for the calls to end, and new calls wait
    for the fork."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.n_calls = 0
        self.n_forks = 0
        self.counts: list[int] = []

    def begin(self) -> int:
        """Begin to limit, and return the number of threads without the limit."""
        with self.changed:
            if not self.n_calls:
                # A call within another one must not wait: the fork waits for both.
                self.changed.wait_for(lambda: not self.n_forks)
            if not self.n_calls:
                libraries = find_blas().lib_controllers
                self.counts = [library.num_threads for library in libraries]
                self._set([1] * len(self.counts))
            self.n_calls += 1
            return max(self.counts, default=1)

    def end(self) -> None:
        with self.changed:
            self.n_calls -= 1
            if not self.n_calls:
                self._set(self.counts)
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

    def _set(self, counts: list[int]) -> None:
        if max(self.counts, default=1) > 1:
            for library, count in zip(find_blas().lib_controllers, counts):
                library.set_num_threads(count)


_limit = _Limit()
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Let matrix products use one thread within the block. Those of an LSTM step are
    small: waiting for other threads would cost more than they gain.

    YIELDS (int): The number of threads that may be used.
    """
    n_threads = _limit.begin()
    try:
        yield n_threads
    finally:
        _limit.end()


def side_by_side(
    tasks: Sequence[Callable[[], ResultT]], parallel: bool
) -> list[ResultT]:
    """Run tasks that compute with numpy, at the same time if parallel.

    RETURNS (list[ResultT]): The results of the tasks, in order.
    """
    global _pool
    if not parallel:
        return [task() for task in tasks]
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(2, thread_name_prefix="spacy-elmo")
        pool = _pool
    return [future.result() for future in [pool.submit(task) for task in tasks]]


def _after_fork() -> None:
    """Start again in a forked process: threads do not survive the fork, and other
    threads of the parent may have held the locks."""
    global _limit, _pool, _pool_lock
    _limit, _pool, _pool_lock = _Limit(), None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _limit.begin_fork(),
        after_in_parent=lambda: _limit.end_fork(),
        after_in_child=_after_fork,
    )
