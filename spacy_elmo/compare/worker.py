"""A process of a comparison. It reads a job a line and writes an answer a line; what
else it would print goes to the log of the job. It ends when its parent does."""

import gc
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any


def main() -> None:
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=listen, args=(jobs,), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    while True:
        job = json.loads(jobs.get())
        with open(job["log"], "w", encoding="utf-8") as log:
            for number in (1, 2):
                os.dup2(log.fileno(), number)
        answers.write(json.dumps(do(job)) + "\n")
        answers.flush()


def listen(jobs: "queue.Queue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(1)  # also in the middle of a training: nobody waits for it any more


def do(job: dict[str, Any]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): The result, or an error in one line."""
    from thinc.api import require_gpu

    from .jobs import JOBS
    from .plan import one_line

    try:
        if job["gpu_id"] >= 0:
            require_gpu(job["gpu_id"])
        result = JOBS[job["do"]](**job["arguments"])
        return {"result": result}
    except Exception as error:
        traceback.print_exc()
        return {"error": one_line(error) or type(error).__name__}
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        gc.collect()  # a pipeline and its cache are large


if __name__ == "__main__":
    main()
