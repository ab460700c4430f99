"""Control the threads of numpy's matrix products."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from .forks import no_fork

ResultT = TypeVar("ResultT")


@cache
def find_blas() -> Any:
    """Find the libraries that compute matrix products. This is done only once, because
    it takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """Counts the calls that limit the libraries to one thread. The limit holds for all
    threads of the process, so it is lifted only when the last of these calls ends."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_calls = 0
        self.counts: list[int] = []

    def begin(self) -> int:
        """Begin to limit, and return the number of threads without the limit."""
        with self.lock:
            if not self.n_calls:
                libraries = find_blas().lib_controllers
                self.counts = [library.num_threads for library in libraries]
                self._set([1] * len(self.counts))
            self.n_calls += 1
            return max(self.counts, default=1)

    def end(self) -> None:
        with self.lock:
            self.n_calls -= 1
            if not self.n_calls:
                self._set(self.counts)

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
    with no_fork():
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
    os.register_at_fork(after_in_child=_after_fork)
