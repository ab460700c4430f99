"""A pool of worker processes that do the jobs of a comparison."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

# Each process uses one thread, and gives the same results every time.
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
    """A job for a worker process.

    name (str): The name of the log file, also used in error messages.
    action (str): A key of `jobs.JOBS`.
    arguments (dict[str, Any]): The keyword arguments of the action, of JSON types only.
    """

    name: str
    action: str
    arguments: dict[str, Any]


class WorkerPool:
    """Starts worker processes. Use it as a context manager, which ends the processes.

    n_process (int): The number of processes.
    logs (Path): A folder for the log files of the jobs.
    gpu_id (int): The GPU that all processes use, or -1 for the CPU.
    """

    def __init__(self, n_process: int, logs: Path, gpu_id: int = -1) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = logs
        self.gpu_id = gpu_id
        with (logs / "workers.log").open("w") as log:
            self.processes = [_start_process(log) for _ in range(n_process)]
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in self.processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(n_process)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *error: Any) -> None:
        for process in self.processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self.processes:
            process.communicate()

    def do_jobs(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        """Do jobs in parallel.

        YIELDS (tuple[int, Any]): The index of a job and its result, as soon as the job
            has finished.
        """
        futures = {
            self._threads.submit(self._do_job, job): index
            for index, job in enumerate(jobs)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()

    def _do_job(self, job: Job) -> Any:
        log = self.logs / f"{job.name}.log"
        message = {
            "action": job.action,
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
            # Return a dead process too: otherwise the next job would wait for ever.
            self._idle.put(process)
        if not line:
            raise ValueError(f"{job.name}: its process has died (see {log})")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(f"{job.name}: {answer['error']} (see {log})")
        return answer["result"]


def _start_process(log: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "spacy_elmo.compare.worker_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, **ENVIRONMENT},
        encoding="utf-8",
    )
