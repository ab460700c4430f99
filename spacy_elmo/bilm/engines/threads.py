"""Run the two directions of a biLM at the same time, each with its share of torch's
threads."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

ResultT = TypeVar("ResultT")


@cache
def own_count_setters() -> list[Any]:
    """Find the C functions that set how many threads the calling thread uses, and
    change no other thread: one of OpenMP and, if torch uses MKL, one of MKL.

    RETURNS (list[Any]): The functions; empty if this build of torch lacks one.
    """
    names = ["omp_set_num_threads"]
    if torch.backends.mkl.is_available():
        names.append("MKL_Set_Num_Threads_Local")
    try:
        library = ctypes.CDLL(torch._C.__file__)
        return [getattr(library, name) for name in names]
    except (OSError, AttributeError):
        return []


def set_own_count(n_threads: int) -> None:
    """Set how many threads torch uses for what the calling thread computes.

    `torch.set_num_threads` would set the count of other threads too: a thread takes
    over the last count set anywhere when it first calls torch, and then keeps it.
    """
    # torch sets the count of a thread once, when the thread first calls it. Let that
    # happen now, or it would later overwrite the count set here.
    torch.get_num_threads()
    for set_count in own_count_setters():
        set_count(n_threads)
    if torch.get_num_threads() != n_threads:
        torch.set_num_threads(n_threads)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the calling thread compute alone while the block runs. Small work gains
    little from a second thread, and if other programs keep the cores busy, it waits for
    that thread longer than the work itself takes."""
    n_threads = torch.get_num_threads()
    if n_threads < 2:
        yield
        return
    set_own_count(1)
    try:
        yield
    finally:
        set_own_count(n_threads)


class Workers:
    """Two threads, each with half of torch's threads. If both directions could use all
    threads, they would wait for each other, and spreading every small operation over
    all cores costs more than it gains."""

    def __init__(self, n_threads: int) -> None:
        self.process = os.getpid()
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="spacy-elmo")
        both_started = threading.Barrier(2)

        def start() -> None:
            set_own_count(max(1, n_threads // 2))
            both_started.wait()

        for task in [self.pool.submit(start) for _ in range(2)]:
            task.result()
        if not own_count_setters():
            torch.set_num_threads(n_threads)  # for threads that are started later

    def fit(self, n_threads: int) -> bool:
        """Return whether these workers can be used: they were made for this number of
        threads and in this process, since threads do not survive a fork."""
        return self.process == os.getpid() and self.n_threads == n_threads


def _after_fork() -> None:
    """Use one thread in a forked process. OpenMP's threads do not survive the fork, and
    torch would wait for them forever. The lock is replaced, because another thread of
    the parent may have held it."""
    global _lock
    _lock = threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_workers: Workers | None = None
_lock = threading.Lock()


def side_by_side(
    tasks: Sequence[Callable[[], ResultT]], parallel: bool
) -> list[ResultT]:
    """Run tasks that compute with torch.

    parallel (bool): Run the tasks at the same time, which pays for large ones. If
        False, run them one after another and on one thread each.
    RETURNS (list[ResultT]): The results of the tasks, in order.
    """
    global _workers
    n_threads = torch.get_num_threads()
    if n_threads < 2:
        return [task() for task in tasks]
    if not parallel:
        with one_thread():
            return [task() for task in tasks]
    with _lock:
        workers = _workers
        if workers is None or not workers.fit(n_threads):
            workers = _workers = Workers(n_threads)
    return [future.result() for future in [workers.pool.submit(t) for t in tasks]]
