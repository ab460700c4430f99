"""Processes that do jobs, each with one thread."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

# One thread each, and the same results from day to day.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONUNBUFFERED": "1",
}


class Job(NamedTuple):
    """name (str): Of the log, and for errors. do (str): See jobs.JOBS."""

    name: str
    do: str
    arguments: dict[str, Any]


class Workers:
    """Use as a context manager: at its end the processes are ended too.

    n_process (int): How many there are.
    logs (Path): A folder; each job has a file of its own in it.
    gpu_id (int): A GPU for all of them, or -1.
    """

    def __init__(self, n_process: int, logs: Path, gpu_id: int = -1) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = logs
        self.gpu_id = gpu_id
        with (logs / "workers.log").open("w") as log:
            self._processes = [_start(log) for _ in range(n_process)]
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(n_process)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: Any) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.communicate()

    def do(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """YIELDS (tuple[int, Any]): Number and result of a job, as they come."""
        futures = {
            self._threads.submit(self._ask, job): n for n, job in enumerate(jobs)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()

    def _ask(self, job: Job) -> Any:
        log = self.logs / f"{job.name}.log"
        message = {
            "do": job.do,
            "arguments": job.arguments,
            "gpu_id": self.gpu_id,
            "log": str(log),
        }
        process = self._idle.get()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            self._idle.put(process)  # even a dead one: nobody may wait for it for ever
        if not line:
            raise ValueError(f"{job.name}: its process has died (see {log})")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(f"{job.name}: {answer['error']} (see {log})")
        return answer["result"]


def _start(log: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "spacy_elmo.compare.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, **ENVIRONMENT},
        encoding="utf-8",
    )
