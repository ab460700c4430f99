"""Keep an earlier run, and everything else, in the folder that a run writes to."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import spacy
from helpers.pretraining import load_log, run_training

from spacy_elmo.bilm import load_bilm
from spacy_elmo.files import one_writer
from spacy_elmo.pretrain.checkpoints import Checkpoints
from spacy_elmo.pretrain.run_folder import READY, REPLACED, RunFolder
from spacy_elmo.pretrain.trainer import Trainer


def read_files(run):
    """Read all files of a run but those of its corpus."""
    files = {path.relative_to(run): path for path in run.rglob("*") if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in files.items()
        if name.parts[0] != "corpus"
    }


@pytest.mark.slow
def test_an_earlier_run_is_not_replaced_by_chance(config_path, tmp_path):
    run = tmp_path / "run"
    run_training(config_path, run)
    before = read_files(run)
    with pytest.raises(ValueError) as error:
        run_training(config_path, run)
    assert str(error.value) == (
        f"{run}: found an earlier run (checkpoints/step-8, checkpoints/step-12, "
        "model-best, model-last); expected --resume to continue it, or --overwrite to "
        "replace it"
    )
    with pytest.raises(ValueError, match="found --resume and --overwrite; expected"):
        run_training(config_path, run, resume=True, overwrite=True)
    assert read_files(run) == before


@pytest.mark.slow
def test_an_overwritten_run_stays_until_the_first_checkpoint(
    config_path, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    run_training(config_path, run)
    before = read_files(run)
    real, steps = Trainer.step, []

    def killed(trainer):
        steps.append(trainer.progress.step)
        if len(steps) == 4:
            raise KeyboardInterrupt
        real(trainer)

    monkeypatch.setattr(Trainer, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        run_training(config_path, run, overwrite=True)
    monkeypatch.undo()
    after = read_files(run)
    assert {name: after[name] for name in before} == before
    said = run_training(config_path, run, resume=True, training__max_steps=13)
    assert "Continuing from step 12" in said
    assert read_files(run).keys() == {
        name.replace("-12", "-13").replace("-8", "-12") for name in before
    }
    said = run_training(config_path, run, overwrite=True, training__max_steps=2)
    assert "Continuing" not in said and "stays until this one is saved" in said
    assert Checkpoints(run / "checkpoints").steps() == [2]
    assert load_bilm(run / "model-best").config.training["steps"] == 2
    said = run_training(config_path, run, resume=True, training__max_steps=3)
    assert "Continuing from step 2" in said
    assert sorted(path.name for path in run.iterdir()) == [
        "checkpoints",
        "corpus",
        "log.jsonl",
        "model-best",
        "model-last",
    ]


@pytest.mark.parametrize("moment", range(12))
@pytest.mark.slow
def test_killed_while_a_run_takes_the_place_of_another(
    config_path, tmp_path, monkeypatch, moment
):
    """The next run finds the earlier run or the new one, with its checkpoint."""
    run = tmp_path / "run"
    run_training(config_path, run, training__max_steps=4)
    calls = []

    def kill(real):
        def killed(*args, **options):
            calls.append(args)
            if len(calls) > moment:
                raise KeyboardInterrupt
            return real(*args, **options)

        return killed

    folder = RunFolder(run)
    assert folder.begin_new_run()
    shutil.copytree(run / "checkpoints", folder.path / "checkpoints")
    (folder.path / "checkpoints" / "step-4").rename(
        folder.path / "checkpoints" / "step-3"
    )
    shutil.copytree(run / "model-best", folder.path / "model-best")
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        for module, name in ((os, "replace"), (shutil, "rmtree"), (os, "unlink")):
            patch.setattr(module, name, kill(getattr(module, name)))
        folder.replace()
    RunFolder(run).repair()
    steps = Checkpoints(run / "checkpoints").steps()
    assert steps in ([3], [4]) and (run / "model-best" / "config.json").exists()
    assert (run / "model-last").exists() == (steps == [4])
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


def make_pipeline(path):
    spacy.blank("en").to_disk(path)


def add_readme(path):
    path.mkdir(parents=True)
    (path / "README.md").write_text("mine")


@pytest.mark.parametrize(
    "name, make",
    [
        ("model-best", make_pipeline),
        ("model-last", add_readme),
        ("checkpoints/step-3", add_readme),
        ("checkpoints", Path.touch),
        ("log.jsonl", lambda path: path.write_text("mine")),
    ],
)
def test_what_no_run_has_written_is_never_touched(config_path, tmp_path, name, make):
    run = tmp_path / "run"
    (run / name).parent.mkdir(parents=True)
    make(run / name)
    before = read_files(run)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(ValueError, match="that no pretraining has written; move"):
            run_training(config_path, run, **options)
        assert read_files(run) == before


def test_an_output_that_is_a_file(config_path, tmp_path):
    with pytest.raises(ValueError, match="found a file; expected a folder to write to"):
        run_training(config_path, config_path)


def test_one_run_at_a_time(config_path, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with one_writer(run), pytest.raises(OSError, match=f"run: process {os.getpid()} "):
        run_training(config_path, run)
    run_training(config_path, run, training__max_steps=1)


@pytest.mark.slow
def test_what_a_run_goes_on_from_is_not_removed(config_path, tmp_path):
    run_training(config_path, tmp_path / "run")
    for name in ("model-best", "model-last"):
        path = str(tmp_path / "run" / name)
        run_training(
            config_path, tmp_path / "run", paths__initialize_from=path, overwrite=True
        )
        assert load_bilm(path)


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("paths.raw_text", "nowhere.txt", "no such file"),
        ("paths.dev_text", "empty.txt", "found no words"),
        ("corpus.lang", "qq", "qq"),
        ("training.batch_size", 10**12, "use more text"),
    ],
)
@pytest.mark.slow
def test_bad_input_leaves_the_earlier_run_alone(
    config_path, tmp_path, monkeypatch, key, value, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    run_training(config_path, tmp_path / "run")
    with pytest.raises(ValueError, match=expected):
        run_training(config_path, tmp_path / "run", overwrite=True, **{key: value})
    assert Checkpoints(tmp_path / "run" / "checkpoints").steps() == [8, 12]
    assert (tmp_path / "run" / "model-best").exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds files in /proc")
def test_the_log_is_on_the_disk_with_each_checkpoint(
    config_path, tmp_path, monkeypatch
):
    sync, steps = os.fsync, []

    def record(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.name == "log.jsonl":
            steps.append(load_log(path)[-1]["step"])
        sync(handle)

    monkeypatch.setattr(os, "fsync", record)
    run_training(config_path, tmp_path / "run")
    assert steps == [4, 8, 12]


@pytest.mark.parametrize("text", ['["model', "5", "[5]", "null", "\udc80", "[" * 10**5])
def test_a_damaged_list_of_what_is_replaced_is_named(tmp_path, text):
    (tmp_path / READY).mkdir()
    (tmp_path / "model-best").mkdir()
    path = tmp_path / READY / REPLACED
    path.write_bytes(text.encode("utf8", "surrogateescape"))
    with pytest.raises(ValueError) as caught:
        RunFolder(tmp_path).repair()
    assert str(caught.value).startswith(f"{path}: found no list of names in JSON")
    assert (tmp_path / "model-best").exists() and path.exists()
