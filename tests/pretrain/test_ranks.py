"""Train one model in several processes with gloo on one machine: under torchrun, or
forked, which saves the time to import torch and spaCy in each of them."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.distributed as dist
from helpers.corpora import build
from helpers.pretraining import load_log, run_training, write_config, write_text
from helpers.ranks import fork_several, train_in_several
from safetensors.torch import load_file

from spacy_elmo import load_bilm
from spacy_elmo.cli.common_options import get_device
from spacy_elmo.pretrain import pretraining, trainer
from spacy_elmo.pretrain.checkpoints import Checkpoints
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.pretrain.ranks import Ranks, choose_gpu
from spacy_elmo.pretrain.trainer import Trainer

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def config_path(tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=60)
    return write_config(tmp_path / "config.cfg", text)


# Runs `spacy` under torchrun. At its tenth step, the second process dies, but not once
# it was started again.
DYING = """if True:
    import os, signal
    from spacy.cli import setup_cli
    from spacy_elmo.pretrain.trainer import Trainer

    make_step, steps = Trainer.step, []

    def step(trainer):
        steps.append(1)
        if len(steps) == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        return make_step(trainer)

    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        Trainer.step = step
    setup_cli()
"""


def run_torchrun(config_path, output, *, restarts):
    """Run a pretraining in which a process dies, and return the exit code and the text
    that was printed."""
    script = output.with_name("dying.py")
    script.write_text(DYING, "utf8")
    command = [*TORCHRUN, "--nproc-per-node", 2, "--max-restarts", restarts, script]
    command += ["elmo", "pretrain", config_path, "--output", output]
    command += ["--training.max_steps", 16]
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, " ".join(done.stdout.split())


def entries(output, kind):
    return [e for e in load_log(output / "log.jsonl") if e["type"] == kind]


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("softmax", ["full", "adaptive"])
def test_two_processes_are_one_with_twice_the_batch(config_path, tmp_path, softmax):
    settings = {
        "training__dropout": 0.0,
        "training__max_steps": 20,
        "training__eval_frequency": 10,
        "vocab__softmax": softmax,
    }
    train_in_several(2, config_path, tmp_path / "two", **settings)
    run_training(config_path, tmp_path / "one", training__batch_size=8, **settings)
    for kind, keys in (
        ("step", ["forward_loss", "backward_loss"]),
        ("evaluation", ["forward", "backward", "mean", "n_tokens", "unknown_rate"]),
    ):
        first, second = (entries(tmp_path / name, kind) for name in ("one", "two"))
        assert len(first) == len(second) > 1
        for a, b in zip(first, second):
            assert np.allclose([a[k] for k in keys], [b[k] for k in keys], rtol=1e-4)
    # The weights differ only by rounding.
    one, two = (
        load_file(tmp_path / name / "model-last" / "weights.safetensors")
        for name in ("one", "two")
    )
    for key, tensor in one.items():
        assert np.allclose(tensor, two[key], atol=1e-3), key


@pytest.mark.slow
@needs_fork
def test_sampled_softmax_and_resume_on_another_number(config_path, tmp_path):
    settings = {"vocab__softmax": "sampled", "vocab__n_samples": 20}
    output = tmp_path / "run"
    train_in_several(2, config_path, output, **settings)
    settings["training__max_steps"] = 16
    said = run_training(config_path, output, resume=True, **settings)
    assert "written by 2 processes and this run has 1" in said
    assert "Continuing from step 12" in said
    assert entries(output, "evaluation")[-1]["step"] == 16


@pytest.mark.slow
@needs_fork
def test_what_one_process_began_two_go_on_with(config_path, tmp_path):
    output = tmp_path / "run"
    run_training(config_path, output)
    out = train_in_several(2, config_path, output, resume=True, training__max_steps=16)
    assert "and this run has 2: LSTM states start from zero" in out
    assert out.count("Continuing from step 12") == 1  # only the first process prints
    steps = [entry["step"] for entry in entries(output, "evaluation")]
    assert steps == [4, 8, 12, 16]
    n_words = 4 * 6  # words per step of one process
    made = load_bilm(output / "model-last").config.training
    assert (made["steps"], made["words"]) == (16, (12 + 4 * 2) * n_words)
    tensors, facts = Checkpoints(output / "checkpoints").load(print)
    assert (facts["n_ranks"], tensors["state.h"].shape[2]) == (2, 2 * 4)
    # Two processes read twice as much text per window, so 12 windows count as 6.
    assert (facts["progress"]["epoch"], facts["progress"]["window"]) == (0, 6 + 4)


@pytest.mark.slow
@needs_fork
def test_all_processes_go_by_one_clock(config_path, tmp_path):
    settings = {
        "training__max_steps": 0,
        "training__max_minutes": 0.1,
        "training__eval_frequency": 1000000,
        "training__checkpoint_minutes": 0.02,
        "training__schedule__decay": "linear",
    }

    def work(rank):
        rates = []

        class Clock:
            """A clock that is four times as fast in the second process."""

            seconds = 0.0

            @classmethod
            def monotonic(cls):
                cls.seconds += 0.25 * (1 + 3 * rank)
                return cls.seconds

        class WatchedTrainer(Trainer):
            def learn_rate(self):
                rates.append(super().learn_rate())
                return rates[-1]

            def run(self):
                super().run()
                kept = {"rates": rates, "weights": dict(self.weights)}
                torch.save(kept, tmp_path / "run" / f"{rank}.pt")

        trainer.time = Clock
        pretraining.Trainer = WatchedTrainer
        run_training(config_path, tmp_path / "run", **settings)

    fork_several(work)
    first, second = (torch.load(tmp_path / "run" / f"{n}.pt") for n in (0, 1))
    assert first["rates"] == second["rates"]
    # The limit is 6 seconds. A step takes 0.25 seconds, as does each of 4 checkpoints.
    assert len(first["rates"]) == 6 / 0.25 - 4
    assert first["rates"] == sorted(first["rates"], reverse=True)
    for name, weight in first["weights"].items():
        assert torch.equal(weight, second["weights"][name]), name


@pytest.mark.slow
@needs_fork
def test_three_two_and_one_process_continue_a_run(config_path, tmp_path):
    output = tmp_path / "run"
    train_in_several(3, config_path, output, training__max_steps=4)
    for n, before, steps in ((2, 3, 8), (1, 2, 12)):
        out = train_in_several(
            n, config_path, output, resume=True, training__max_steps=steps
        )
        assert f"by {before} processes and this run has {n}" in out
        assert f"Continuing from step {steps - 4}" in out
    made = load_bilm(output / "model-last").config.training
    assert made["words"] == 4 * (3 + 2 + 1) * 4 * 6


# GPUs, as far as they can be tested without one


@pytest.mark.parametrize(
    "gpu_id, environment, expected",
    [
        (-1, {}, -1),
        (2, {}, 2),
        (2, {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}, 2),
        (0, {"WORLD_SIZE": "4", "LOCAL_RANK": "3", "RANK": "7"}, 3),
        (-1, {"WORLD_SIZE": "4", "LOCAL_RANK": "3"}, -1),
    ],
)
def test_each_process_has_a_gpu_of_its_own(gpu_id, environment, expected):
    assert choose_gpu(gpu_id, environment) == expected


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert get_device(-1) == "cpu" and get_device(1) == "cuda:1"
    with pytest.raises(ValueError, match=r"found --gpu-id 2, but torch sees 2"):
        get_device(2)


@pytest.fixture
def two(monkeypatch):
    """Set the environment variables of the first of two processes."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(dist, "is_initialized", lambda: True)


def test_processes_meet_on_their_gpus_and_wait_long(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    calls = {}
    store = dist.HashStore()
    monkeypatch.setattr(dist, "rendezvous", lambda url: iter([(store, 1, 2)]))
    monkeypatch.setattr(torch.cuda, "set_device", lambda d: calls.update(device=d))
    monkeypatch.setattr(
        dist,
        "init_process_group",
        lambda backend, **options: calls.update(backend=backend, **options),
    )
    groups = []
    monkeypatch.setattr(dist, "new_group", lambda **options: groups.append(options))
    Ranks(torch.device("cuda:1"))
    assert calls["backend"] == "nccl" and calls["device"] == torch.device("cuda:1")
    # A step ends soon, or a host is lost. Tokenizing a text may take days.
    assert calls["timeout"].seconds < 7200 and calls["timeout"].days == 0
    assert groups[0]["backend"] == "gloo" and groups[0]["timeout"].days >= 7
    assert store.timeout == groups[0]["timeout"]


def test_what_is_exchanged_is_on_the_device(two, monkeypatch):
    """NCCL accepts only tensors on a GPU. Here, the device "meta" replaces the GPU."""
    seen = []

    def exchange(*tensors, **options):
        flat = [t for part in tensors for t in (part if type(part) is list else [part])]
        seen.extend(t.device.type for t in flat if isinstance(t, torch.Tensor))

    for name in ("all_gather", "all_reduce", "broadcast"):
        monkeypatch.setattr(dist, name, exchange)
    ranks = Ranks(torch.device("meta"))
    monkeypatch.setattr(torch.Tensor, "__float__", lambda tensor: 0.0)
    # Tensors on "meta" have no values, so zeros are returned instead.
    real = torch.Tensor.to

    def to(tensor, device, **options):
        if tensor.device.type == "meta":
            return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)
        return real(tensor, device, **options)

    monkeypatch.setattr(torch.Tensor, "to", to)
    state = torch.arange(6, dtype=torch.uint8).view(1, 6)
    found = ranks.collect(state, 0)
    assert found.device.type == "cpu" and found.shape == (2, 6)
    assert ranks.total(torch.ones(3)).device.type == "cpu"
    ranks.of_first(1.0)
    assert len(seen) == 3 + 1 + 1 and set(seen) == {"meta"}


@pytest.mark.parametrize(
    "error, lost",
    [
        (RuntimeError("Connection closed by peer\nmore"), True),
        (torch.OutOfMemoryError("out of memory"), False),
    ],
)
def test_only_a_lost_process_is_called_lost(two, monkeypatch, error, lost):
    def exchange(*args, **options):
        raise error

    monkeypatch.setattr(dist, "all_reduce", exchange)
    with pytest.raises(ValueError if lost else torch.OutOfMemoryError) as caught:
        Ranks(torch.device("cpu")).any(True)
    said = str(caught.value)
    assert ("process 0 lost the connection" in said) == lost and "\n" not in said


def test_errors_of_the_model_are_not_those_of_the_exchange(
    two, config_path, tmp_path, monkeypatch
):
    def step(trainer):
        raise RuntimeError("shapes do not fit")

    # Only the first process is there: the other one cannot tokenize its share.
    build(tmp_path / "run" / "corpus", tmp_path / "text.txt", dev_share=0.1)

    def gather(parts, tensor, **options):
        for part in parts:
            part.copy_(tensor)

    monkeypatch.setattr(dist, "all_gather", gather)
    for name in ("all_reduce", "broadcast", "barrier"):
        monkeypatch.setattr(dist, name, lambda *args, **options: None)
    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        pretrain(load_config(config_path, {}), tmp_path / "run", say=lambda text: None)


@pytest.mark.slow
def test_a_process_that_dies_stops_the_job(config_path, tmp_path):
    code, out = run_torchrun(config_path, tmp_path / "run", restarts=0)
    assert code != 0
    assert "--resume continues from the last checkpoint" in out or "SIGKILL" in out
    said = run_training(config_path, tmp_path / "run", resume=True)
    assert "Continuing from step 8" in said


@pytest.mark.slow
def test_torchrun_starts_again_where_it_was(config_path, tmp_path):
    code, out = run_torchrun(config_path, tmp_path / "run", restarts=3)
    assert code == 0, out
    assert "Continuing from step 8" in out
    steps = [entry["step"] for entry in entries(tmp_path / "run", "evaluation")]
    assert steps == [4, 8, 12, 16]
