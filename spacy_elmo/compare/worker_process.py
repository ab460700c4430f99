"""A worker process of a comparison.

It reads one job per line from stdin and writes one answer per line to stdout, both as
JSON. All other output goes to the log of the job. The process ends when its parent
process ends.
"""

import gc
import json
import os
import queue
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any


def main() -> None:
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=receive_jobs, args=(jobs,), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    while True:
        job = json.loads(jobs.get())
        with open(job["log"], "w", encoding="utf-8") as log:
            for stream in (1, 2):  # stdout, stderr
                os.dup2(log.fileno(), stream)
        answers.write(json.dumps(do_job(job)) + "\n")
        answers.flush()


def receive_jobs(jobs: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    # The parent has ended, so nobody needs the training that may be running.
    os._exit(1)


def do_job(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job.

    RETURNS (dict[str, Any]): "result" with the result of the job, or "error" with an
        error message on one line.
    """
    from thinc.api import require_gpu

    from .config_pair import one_line
    from .jobs import JOBS

    try:
        if job["gpu_id"] >= 0:
            require_gpu(job["gpu_id"])
        result = JOBS[job["action"]](**job["arguments"])
        return {"result": result}
    except Exception as error:
        with suppress(OSError):
            traceback.print_exc()
        return {"error": one_line(error) or type(error).__name__}
    finally:
        # The answer must get through, even if the disk is full and there is no log.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        gc.collect()  # a pipeline and its cache are large


if __name__ == "__main__":
    main()
