import json
import os
import signal
import subprocess
import sys

import pytest

from spacy_elmo.compare.worker_pool import Job, WorkerPool

pytestmark = pytest.mark.slow


def test_worker_ends_with_its_parent(tmp_path):
    log = str(tmp_path / "log")
    job = {"action": "speed", "arguments": {}, "gpu_id": -1, "log": log}
    done = subprocess.run(
        [sys.executable, "-m", "spacy_elmo.compare.worker_process"],
        input=json.dumps(job) + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")


def test_errors_of_workers(tmp_path):
    job = Job("name", "speed", {"config": "", "models": [str(tmp_path / "nowhere")]})
    with WorkerPool(1, tmp_path / "logs") as pool:
        with pytest.raises(ValueError, match=r"name: .*nowhere.* \(see .*name.log\)"):
            list(pool.do_jobs([job]))
    assert "Traceback" in (tmp_path / "logs" / "name.log").read_text()
    with WorkerPool(2, tmp_path / "logs") as pool:
        for process in pool.processes:
            os.kill(process.pid, signal.SIGTERM)
        with pytest.raises(ValueError, match="name: its process has died"):
            list(pool.do_jobs([job] * 5))
