"""Several processes train one model: torchrun with gloo on one machine."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pretraining import write_config, write_text
from safetensors.torch import load_file

from spacy_elmo.pretrain.checkpoints import Checkpoints
from spacy_elmo.pretrain.config import load_config
from spacy_elmo.pretrain.run import pretrain, read_log

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


@pytest.fixture
def config_path(tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=60)
    return write_config(tmp_path / "config.cfg", text)


def start(config_path, output, *args, restarts=0):
    command = [*TORCHRUN, "--nproc-per-node", 2, "--max-restarts", restarts]
    command += ["-m", "spacy", "elmo", "pretrain", config_path, "--output", output]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        list(map(str, [*command, *args])),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def entries(output, kind):
    return [e for e in read_log(output / "log.jsonl") if e["type"] == kind]


def wait_for_step(output, step, process):
    """Until there is a checkpoint of this step or a later one."""
    checkpoints = Checkpoints(output / "checkpoints")
    while not any(found >= step for found in checkpoints.steps()):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)


def worker_of(process):
    """The id of the second worker that torchrun has started."""
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True
    )
    return int(found.stdout.split()[-1])


@pytest.mark.parametrize("softmax", ["full", "adaptive"])
def test_two_processes_are_one_with_twice_the_batch(config_path, tmp_path, softmax):
    args = ["--training.dropout", 0.0, "--vocab.softmax", softmax]
    args += ["--training.max_steps", 40, "--training.eval_frequency", 20]
    process = start(config_path, tmp_path / "two", *args)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    overrides = {
        "training.dropout": 0.0,
        "training.max_steps": 40,
        "training.eval_frequency": 20,
        "training.batch_size": 8,
        "vocab.softmax": softmax,
    }
    config = load_config(config_path, overrides)
    pretrain(config, tmp_path / "one", say=lambda text: None)
    for kind, keys in (
        ("step", ["forward_loss", "backward_loss"]),
        ("evaluation", ["forward", "backward", "mean", "n_tokens", "unknown_rate"]),
    ):
        first, second = (entries(tmp_path / name, kind) for name in ("one", "two"))
        assert len(first) == len(second) > 1
        for a, b in zip(first, second):
            assert np.allclose([a[k] for k in keys], [b[k] for k in keys], rtol=1e-4)
    # Gradients of rows of a sampled softmax are joined too; here, all weights.
    one, two = (
        load_file(tmp_path / name / "model-last" / "weights.safetensors")
        for name in ("one", "two")
    )
    for key, tensor in one.items():
        assert np.allclose(tensor, two[key], atol=1e-3), key


def test_sampled_softmax_and_resume_on_another_number(config_path, tmp_path):
    args = ["--vocab.softmax", "sampled", "--vocab.n_samples", 20]
    process = start(config_path, tmp_path / "run", *args)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    overrides = {
        "vocab.softmax": "sampled",
        "vocab.n_samples": 20,
        "training.max_steps": 16,
    }
    said = []
    config = load_config(config_path, overrides)
    pretrain(config, tmp_path / "run", resume=True, say=said.append)
    assert any("written by 2 processes and this run has 1" in line for line in said)
    assert any("Going on from step 12" in line for line in said)
    assert entries(tmp_path / "run", "evaluation")[-1]["step"] == 16


@pytest.mark.skipif(sys.platform == "win32", reason="pgrep")
def test_a_process_that_dies_stops_the_job(config_path, tmp_path):
    process = start(config_path, tmp_path / "run", "--training.max_steps", 1000000)
    wait_for_step(tmp_path / "run", 8, process)
    os.kill(worker_of(process), signal.SIGKILL)
    out, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "--resume goes on from the last checkpoint" in " ".join(out.split()) or (
        "SIGKILL" in out
    )
    config = load_config(config_path, {"training.max_steps": 1})
    said = []
    pretrain(config, tmp_path / "run", resume=True, say=said.append)
    assert any(line.startswith("Going on from step") for line in said)


@pytest.mark.skipif(sys.platform == "win32", reason="pgrep")
def test_torchrun_starts_again_where_it_was(config_path, tmp_path):
    args = ["--training.max_steps", 400]
    process = start(config_path, tmp_path / "run", *args, restarts=3)
    wait_for_step(tmp_path / "run", 8, process)
    os.kill(worker_of(process), signal.SIGKILL)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    assert "Going on from step" in out
    steps = [entry["step"] for entry in entries(tmp_path / "run", "evaluation")]
    assert steps == list(range(4, 401, 4))
