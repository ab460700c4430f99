"""Kill and resume a run: it ends with the same bits as a run without interruption."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from helpers.pretraining import (
    change_facts,
    command,
    load_log,
    run_training,
    write_config,
    write_text,
)
from safetensors import SafetensorError
from safetensors.torch import load_file

from spacy_elmo.bilm.formats import tensors as tensor_files
from spacy_elmo.files import replace_folder, restore_folder
from spacy_elmo.pretrain.checkpoints import Checkpoints
from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.pretrain.trainer import Trainer

FILES = ("weights.safetensors", "softmax.safetensors")


def weights(folder):
    return {name: load_file(folder / name) for name in FILES}


def assert_same_bits(first, second):
    """Check that the last models of two runs have the same bits."""
    for name, tensors in weights(first / "model-last").items():
        for key, tensor in weights(second / "model-last")[name].items():
            assert tensor.numpy().tobytes() == tensors[key].numpy().tobytes(), key


@pytest.mark.parametrize(
    "softmax, optimizer",
    [
        ("full", "adamw"),
        *(
            pytest.param(softmax, optimizer, marks=pytest.mark.slow)
            for softmax, optimizer in (
                ("full", "adagrad"),
                ("sampled", "adagrad"),
                ("adaptive", "adamw"),
            )
        ),
    ],
)
def test_stopping_changes_no_bit(config_path, tmp_path, softmax, optimizer):
    settings = {
        "vocab__softmax": softmax,
        "vocab__n_samples": 20,
        "training__optimizer__name": optimizer,
        "training__accumulate": 2,
    }
    run_training(config_path, tmp_path / "whole", **settings)
    for last in (3, 5, 12):
        run_training(
            config_path,
            tmp_path / "parts",
            resume=True,
            training__max_steps=last,
            **settings,
        )
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_killed_at_random_moments(config_path, tmp_path):
    settings = {"training__max_steps": 60, "training__eval_frequency": 2}
    run_training(config_path, tmp_path / "whole", **settings)
    args = ["pretrain", config_path, "--resume", "--training.max_steps", 60]
    args += ["--training.eval_frequency", 2, "--output"]
    moments = random.Random(0)
    n_kills = 0
    while True:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command(*args, tmp_path / "killed"), env=env)
        log = tmp_path / "killed" / "log.jsonl"
        size = log.stat().st_size if log.exists() else 0
        # Once the log has changed, checkpoints are written all the time.
        while process.poll() is None and (
            not log.exists() or log.stat().st_size == size
        ):
            time.sleep(0.01)
        time.sleep(moments.random() * 0.4)
        if n_kills == 2 or process.poll() is not None:
            assert process.wait() == 0
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        n_kills += 1
    assert n_kills
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")
    steps = [e["step"] for e in load_log(log) if e["type"] == "evaluation"]
    assert steps == list(range(2, 61, 2))


@pytest.mark.slow
def test_killed_while_a_checkpoint_is_written(config_path, tmp_path, monkeypatch):
    run_training(config_path, tmp_path / "whole")
    real = os.replace

    def killed(source, target):
        if "step-8" in str(target):
            raise KeyboardInterrupt
        return real(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        run_training(config_path, tmp_path / "parts")
    monkeypatch.undo()
    said = run_training(config_path, tmp_path / "parts", resume=True)
    assert "Continuing from step 4" in said
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a config, a folder of a complete run, and of one that was stopped."""
    folder = tmp_path_factory.mktemp("runs")
    config = write_config(folder / "config.cfg", write_text(folder / "text.txt"))
    run_training(config, folder / "whole")
    run_training(config, folder / "parts", training__max_steps=10)
    return config, folder / "whole", folder / "parts"


@pytest.mark.parametrize(
    "damage",
    ["flip", "place", "cut", "facts", "empty", "word", "missing"],
)
@pytest.mark.slow
def test_a_corrupt_checkpoint_is_passed_over(runs, tmp_path, damage):
    config_path, whole, parts = runs
    shutil.copytree(parts, tmp_path / "parts")
    newest = tmp_path / "parts" / "checkpoints" / "step-10"
    tensors, facts = newest / "tensors.safetensors", newest / "facts.json"
    data = bytearray(tensors.read_bytes())
    if damage == "cut":
        tensors.write_bytes(data[:-100])
    elif damage == "flip":
        data[len(data) // 2] ^= 1
        tensors.write_bytes(data)
    elif damage == "facts":
        facts.write_text("{")
    elif damage == "empty":
        tensors.unlink()
    else:
        said = json.loads(facts.read_text("utf8"))
        if damage == "place":
            said["progress"]["window"] += 1
        elif damage == "word":
            said["vocab"][-1] = "another"
        else:
            del said["progress"]
        facts.write_text(json.dumps(said), "utf8")
    said = run_training(config_path, tmp_path / "parts", resume=True)
    assert "step-10: cannot be used" in said
    assert "Continuing from step 8" in said
    assert_same_bits(whole, tmp_path / "parts")


@pytest.mark.slow
def test_only_corrupt_checkpoints(config_path, tmp_path):
    run = tmp_path / "run"
    run_training(config_path, run)
    for path in run.glob("checkpoints/*/facts.json"):
        path.write_text("{")
    said = run_training(config_path, run, resume=True, training__max_steps=5)
    assert f"Found no checkpoint in {run}: starting from the beginning" in said
    # The damaged checkpoints of later steps were removed.
    assert Checkpoints(run / "checkpoints").steps() == [4, 5]
    assert "Continuing from step 5" in run_training(config_path, run, resume=True)


@pytest.mark.parametrize("moment", [0, 1])
def test_killed_while_a_folder_takes_the_place_of_another(
    config_path, tmp_path, monkeypatch, moment
):
    """A run is killed while it replaces a checkpoint of the same step, or a model."""
    run = tmp_path / "run"
    run_training(config_path, run, training__max_steps=4)
    for target in (run / "checkpoints" / "step-4", run / "model-best"):
        before = {path.name: path.read_bytes() for path in target.iterdir()}
        part = target.with_name(f"step-4.{'0' * 16}.part")
        part.mkdir()
        (part / "new").touch()
        real, calls = os.replace, []

        def killed(source, goal, real=real, calls=calls):
            calls.append(source)
            if len(calls) > moment:
                raise KeyboardInterrupt
            real(source, goal)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "replace", killed)
            replace_folder(part, target)
        Checkpoints(run / "checkpoints").clear_parts()
        restore_folder(target)
        after = {path.name: path.read_bytes() for path in target.iterdir()}
        assert after == before
    names = {path.name for path in (run / "checkpoints").iterdir()}
    assert names == {"step-4"}


def test_a_full_disk_is_one_sentence(config_path, tmp_path, monkeypatch):
    def full(*args):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(tensor_files, "save_file", full)
    with pytest.raises(OSError, match="cannot be written because the disk is full"):
        run_training(config_path, tmp_path / "run")


def test_processes_that_find_different_checkpoints(config_path, tmp_path, monkeypatch):
    run_training(config_path, tmp_path / "run", training__max_steps=2)
    monkeypatch.setattr(Ranks, "of_first", lambda ranks, number: number + 1)
    with pytest.raises(ValueError, match="on a disk that all of them share"):
        run_training(config_path, tmp_path / "run", resume=True)


@pytest.mark.slow
def test_another_text_held_out_has_a_best_of_its_own(config_path, tmp_path):
    run = tmp_path / "run"
    held_out = [write_text(tmp_path / f"{seed}.txt", seed=seed) for seed in (1, 2)]
    run_training(config_path, run, paths__dev_text=str(held_out[0]))
    # Set the best perplexity to 1, since no evaluation can be better.
    for path in run.glob("checkpoints/*/facts.json"):
        change_facts(
            path, lambda facts: facts["progress"].update(best=1.0, since_best=7)
        )
    settings = {"paths__dev_text": str(held_out[1]), "training__max_steps": 16}
    said = run_training(config_path, run, resume=True, **settings)
    assert "The text has changed" in said
    config = json.loads((run / "model-best" / "config.json").read_text("utf8"))
    assert config["training"]["steps"] == 16


@pytest.mark.parametrize("settings", [{"eval_frequency": 1}, {"checkpoint_minutes": 0}])
def test_weights_that_are_not_finite_are_not_saved(
    config_path, tmp_path, monkeypatch, settings
):
    def overflow(trainer):
        step(trainer)
        next(trainer.bilm.parameters()).data.fill_(float("inf"))

    step = Trainer.step
    run = tmp_path / "run"
    run_training(config_path, run, training__max_steps=2)
    named = {f"training__{key}": value for key, value in settings.items()}
    message = "weights are not finite after step 3; lower"
    with monkeypatch.context() as patch, pytest.raises(ValueError, match=message):
        patch.setattr(Trainer, "step", overflow)
        run_training(config_path, run, resume=True, **named)
    assert Checkpoints(run / "checkpoints").steps() == [2]
    config = json.loads((run / "model-best" / "config.json").read_text("utf8"))
    assert config["training"]["steps"] == 2
    assert "Continuing from step 2" in run_training(config_path, run, resume=True)


def test_a_run_that_resumes_at_its_end_is_evaluated(config_path, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    run, settings = tmp_path / "run", {"training__checkpoint_minutes": 0}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "evaluate", stop)
        run_training(config_path, run, **settings)  # it stops at step 4
    assert not (run / "model-best").exists()
    run_training(config_path, run, resume=True, training__max_steps=3)
    config = json.loads((run / "model-best" / "config.json").read_text("utf8"))
    assert config["training"]["steps"] == 3
