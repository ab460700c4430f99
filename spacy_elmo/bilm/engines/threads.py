"""Two tasks side by side: one per direction of the biLM."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

ResultT = TypeVar("ResultT")


class _Workers:
    """Two threads, each with half of torch's threads for itself. With all threads in
    one place the two directions would follow each other and every small operation
    would be spread over all cores, which costs more than it gains."""

    def __init__(self, n_threads: int) -> None:
        self.pid = os.getpid()
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="spacy-elmo")
        both = threading.Barrier(2)

        def prepare() -> None:
            # Asked once, torch keeps what a thread is told. If not, a thread takes the
            # number that was told last anywhere as soon as it first needs one.
            torch.get_num_threads()
            torch.set_num_threads(max(1, n_threads // 2))
            both.wait()

        for task in [self.pool.submit(prepare) for _ in range(2)]:
            task.result()
        # Setting the number in a thread also set it for threads yet to come.
        torch.set_num_threads(n_threads)


def _after_fork() -> None:
    """OpenMP's threads do not live on in a forked process either, and waiting for them
    would be for ever."""
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_workers: _Workers | None = None
_lock = threading.Lock()


def side_by_side(
    tasks: Sequence[Callable[[], ResultT]], parallel: bool
) -> list[ResultT]:
    """Run tasks that compute with torch.

    parallel (bool): Whether they are large enough to run at the same time; if not,
        they follow each other, without spreading operations over threads.
    RETURNS (list[ResultT]): What the tasks return, in order.
    """
    global _workers
    n_threads = torch.get_num_threads()
    if n_threads < 2:
        return [task() for task in tasks]
    if not parallel:
        torch.set_num_threads(1)
        try:
            return [task() for task in tasks]
        finally:
            torch.set_num_threads(n_threads)
    with _lock:
        known = _workers
        # Threads do not live on in a forked process.
        if known is None or known.pid != os.getpid() or known.n_threads != n_threads:
            known = _workers = _Workers(n_threads)
    return [future.result() for future in [known.pool.submit(t) for t in tasks]]
