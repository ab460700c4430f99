"""A run that was killed ends with the same bits as one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from helpers.pretraining import CONFIG, command, run, write_config, write_text
from safetensors import SafetensorError
from safetensors.torch import load_file

from spacy_elmo.bilm.formats import tensors as tensor_files
from spacy_elmo.files import replace_folder, restore_folder
from spacy_elmo.pretrain.checkpoints import Checkpoints
from spacy_elmo.pretrain.corpus import Corpus, build_corpus
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.pretrain.progress import load_log
from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.pretrain.trainer import Trainer
from spacy_elmo.text.tokenizers import Tokenization

FILES = ("weights.safetensors", "softmax.safetensors")


@pytest.fixture
def config_path(tmp_path):
    text = write_text(tmp_path / "text.txt")
    return write_config(tmp_path / "config.cfg", text)


def weights(folder):
    return {name: load_file(folder / name) for name in FILES}


def assert_same_bits(first, second):
    """Of the last models of two runs."""
    for name, tensors in weights(first / "model-last").items():
        for key, tensor in weights(second / "model-last")[name].items():
            assert tensor.numpy().tobytes() == tensors[key].numpy().tobytes(), key


def train(config_path, output, *, resume=False, **overrides):
    said = []
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    config = load_config(config_path, named)
    pretrain(config, output, resume=resume, say=said.append)
    return "\n".join(said)


@pytest.mark.parametrize(
    "optimizer", ["adamw", pytest.param("adagrad", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "softmax",
    [
        "full",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("sampled", "adaptive")
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
    train(config_path, tmp_path / "whole", **settings)
    for last in (3, 5, 12):
        train(
            config_path,
            tmp_path / "parts",
            resume=True,
            training__max_steps=last,
            **settings,
        )
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_killed_at_random_moments(config_path, tmp_path):
    args = ["pretrain", config_path, "--resume", "--training.max_steps", 60]
    args += ["--training.eval_frequency", 2, "--output"]
    assert run(*args, tmp_path / "whole").returncode == 0
    moments = random.Random(0)
    n_kills = 0
    while True:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command(*args, tmp_path / "killed"), env=env)
        log = tmp_path / "killed" / "log.jsonl"
        size = log.stat().st_size if log.exists() else 0
        # From the first evaluation on, checkpoints are written all the time.
        while process.poll() is None and (
            not log.exists() or log.stat().st_size == size
        ):
            time.sleep(0.01)
        time.sleep(moments.random() * 0.4)
        if n_kills == 4 or process.poll() is not None:
            assert process.wait() == 0
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        n_kills += 1
    assert n_kills
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")
    steps = [e["step"] for e in load_log(log) if e["type"] == "evaluation"]
    assert steps == list(range(2, 61, 2))


def test_killed_while_a_checkpoint_is_written(config_path, tmp_path, monkeypatch):
    train(config_path, tmp_path / "whole")
    real = os.replace

    def killed(source, target):
        if "step-8" in str(target):
            raise KeyboardInterrupt
        return real(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        train(config_path, tmp_path / "parts")
    monkeypatch.undo()
    said = train(config_path, tmp_path / "parts", resume=True)
    assert "Continuing from step 4" in said
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    "damage",
    [
        "flip",
        "place",
        *(
            pytest.param(damage, marks=pytest.mark.slow)
            for damage in ("cut", "facts", "empty", "word", "missing")
        ),
    ],
)
def test_a_corrupt_checkpoint_is_passed_over(config_path, tmp_path, damage):
    train(config_path, tmp_path / "whole")
    train(config_path, tmp_path / "parts", training__max_steps=10)
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
    said = train(config_path, tmp_path / "parts", resume=True)
    assert "step-10: cannot be used" in said
    assert "Continuing from step 8" in said
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


def test_only_corrupt_checkpoints(config_path, tmp_path):
    run = tmp_path / "run"
    train(config_path, run)
    for path in run.glob("checkpoints/*/facts.json"):
        path.write_text("{")
    said = train(config_path, run, resume=True, training__max_steps=5)
    assert f"Found no checkpoint in {run}: starting from the beginning" in said
    # They do not count as newer than what this run writes.
    assert Checkpoints(run / "checkpoints").steps() == [4, 5]
    assert "Continuing from step 5" in train(config_path, run, resume=True)


@pytest.mark.parametrize("moment", [0, 1])
def test_killed_while_a_folder_takes_the_place_of_another(
    config_path, tmp_path, monkeypatch, moment
):
    """Of a checkpoint of the same step, and of a model."""
    run = tmp_path / "run"
    train(config_path, run, training__max_steps=4)
    for target in (run / "checkpoints" / "step-4", run / "model-best"):
        before = {path.name: path.read_bytes() for path in target.iterdir()}
        part = target.with_name("part-4")
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
    with pytest.raises(OSError, match="cannot be written .No space left on device"):
        train(config_path, tmp_path / "run")


def test_processes_that_find_different_checkpoints(config_path, tmp_path, monkeypatch):
    train(config_path, tmp_path / "run", training__max_steps=2)
    monkeypatch.setattr(Ranks, "of_first", lambda ranks, number: number + 1)
    with pytest.raises(ValueError, match="on a disk that all of them share"):
        train(config_path, tmp_path / "run", resume=True)


def test_another_text_held_out_has_a_best_of_its_own(config_path, tmp_path):
    run = tmp_path / "run"
    held_out = [write_text(tmp_path / f"{seed}.txt", seed=seed) for seed in (1, 2)]
    train(config_path, run, paths__dev_text=str(held_out[0]))
    for path in run.glob("checkpoints/*/facts.json"):  # as good as it gets
        facts = json.loads(path.read_text("utf8"))
        del facts["checksum_of_facts"]
        facts["progress"].update(best=1.0, since_best=7)
        path.write_text(json.dumps(facts), "utf8")
    settings = {"paths__dev_text": str(held_out[1]), "training__max_steps": 16}
    said = train(config_path, run, resume=True, **settings)
    assert "The text has changed" in said
    config = json.loads((run / "model-best" / "config.json").read_text("utf8"))
    assert config["training"]["steps"] == 16


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves(config_path, tmp_path, number):
    args = ["pretrain", config_path, "--output", tmp_path / "run", "--resume"]
    args += ["--training.max_steps", 100000, "--training.eval_frequency", 100000]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command(*args), env=env, stdout=subprocess.PIPE, text=True
    )
    log = tmp_path / "run" / "log.jsonl"
    while not log.exists() or log.stat().st_size < 2000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130  # not done
    assert "--resume continues from here" in out
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1


def test_a_signal_at_the_worst_moment_is_not_lost(config_path, tmp_path, monkeypatch):
    real, calls = Ranks.any, []

    def any_of(ranks, flag):
        calls.append(flag)
        if len(calls) == 7:  # after this process was asked, before all have agreed
            signal.raise_signal(signal.SIGINT)
        return real(ranks, flag)

    monkeypatch.setattr(Ranks, "any", any_of)
    config = load_config(config_path, {"training.max_steps": 50})
    assert not pretrain(config, tmp_path / "run", say=lambda text: None)
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1


# `spacy` with a tokenizer that, in each process, stops at its first text: it says so,
# and waits to be told to go on.
WAITING = """if True:
    import os, signal, time
    from pathlib import Path
    import spacy
    from spacy.cli import setup_cli
    from spacy_elmo.text import chunks, tokenized_chunks, tokenizers

    # In the background of a shell, it would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chunks.CHUNK_CHARACTERS = 500  # other processes get small texts too
    tokenized_chunks.FEW_CHUNKS = 2

    @spacy.registry.tokenizers("spacy_elmo.waiting.v1")
    def make_tokenizer():
        def create(nlp):
            split = spacy.registry.tokenizers.get(tokenizers.RULES)()(nlp)

            def wait_and_split(text):
                if text != "a":  # with which it is tried
                    Path(f"waiting-{os.getpid()}").touch()
                while text != "a" and not Path("go").exists():
                    time.sleep(0.01)
                return split(text)

            return wait_and_split

        return create

    if __name__ == "__main__":
        setup_cli()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="groups of processes")
@pytest.mark.parametrize("n_process", [1, 2])
def test_ctrl_c_while_the_text_is_read(config_path, tmp_path, n_process):
    (tmp_path / "waiting.py").write_text(WAITING, "utf8")
    args = [sys.executable, "waiting.py", "elmo", "pretrain", config_path]
    args += ["--output", "run", "--corpus.tokenizer", "spacy_elmo.waiting.v1"]
    args += ["--corpus.n_process", n_process]
    options = {
        "cwd": tmp_path,
        "env": {**os.environ, "OMP_NUM_THREADS": "1"},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    args = list(map(str, args))
    # A terminal sends it to all processes that the command has started.
    process = subprocess.Popen(args, start_new_session=True, **options)
    while len(list(tmp_path.glob("waiting-*"))) < n_process:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130  # not done
    assert "Traceback" not in out
    assert "Run the same command again" in out
    assert not (tmp_path / "run" / "corpus" / "corpus.json").exists()

    done = subprocess.run(args, timeout=300, **options)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("Tokenized: ")  # and not found
    assert (tmp_path / "run" / "model-last").exists()
    again = Corpus(tmp_path / "run" / "corpus").meta
    whole, _ = build_corpus(
        [str(tmp_path / "text.txt")],
        tmp_path / "whole",
        tokenization=Tokenization("en"),
        dev_share=0.1,
    )
    assert all(again[part] == whole.meta[part] for part in ("train", "dev"))


def test_without_resume_a_run_begins_anew(config_path, tmp_path, monkeypatch):
    run = tmp_path / "run"
    checkpoints = Checkpoints(run / "checkpoints")
    train(config_path, run)
    assert checkpoints.steps() == [8, 12]
    (run / "checkpoints" / "part-16").mkdir()

    def killed(*args, **options):
        raise KeyboardInterrupt

    # Once it trains, nothing of the old run is left to go on from.
    monkeypatch.setattr(Trainer, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        train(config_path, run)
    monkeypatch.undo()
    assert not list((run / "checkpoints").iterdir())
    assert not list(run.glob("model-*"))
    train(config_path, run)
    said = train(config_path, run, training__max_steps=2)
    assert "Continuing" not in said and "Starting again" in said
    assert checkpoints.steps() == [2]
    (run / "checkpoints" / "part-16").mkdir()
    said = train(config_path, run, resume=True, training__max_steps=3)
    assert "Continuing from step 2" in said
    assert checkpoints.steps() == [2, 3]
    assert not (run / "checkpoints" / "part-16").exists()


def test_what_a_run_goes_on_from_is_not_removed(config_path, tmp_path):
    train(config_path, tmp_path / "run")
    best = str(tmp_path / "run" / "model-best")
    train(config_path, tmp_path / "run", paths__initialize_from=best)
    assert (tmp_path / "run" / "model-best").exists()


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("paths.raw_text", "nowhere.txt", "no such file"),
        ("paths.dev_text", "empty.txt", "found no words"),
        ("corpus.lang", "qq", "qq"),
        ("training.batch_size", 10**6, "use more text"),
    ],
)
def test_bad_input_leaves_the_earlier_run_alone(
    config_path, tmp_path, monkeypatch, key, value, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    train(config_path, tmp_path / "run")
    with pytest.raises(ValueError, match=expected):
        train(config_path, tmp_path / "run", **{key: value})
    assert Checkpoints(tmp_path / "run" / "checkpoints").steps() == [8, 12]
    assert (tmp_path / "run" / "model-best").exists()


# Other settings than those of the run that wrote the checkpoint


def forget_run(output):
    """As older versions wrote them."""
    for path in output.glob("checkpoints/*/facts.json"):
        facts = json.loads(path.read_text("utf8"))
        del facts["run"], facts["checksum_of_facts"]
        path.write_text(json.dumps(facts), "utf8")


@pytest.mark.parametrize("old", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "key, found, other",
    [
        ("model.lstm.dim", 16, 32),
        ("model.lstm.n_layers", 2, 3),
        ("model.encoder.n_highway", 1, 2),
        ("training.optimizer.name", "adamw", "adagrad"),
        ("vocab.softmax", "full or sampled", "adaptive"),
    ],
)
def test_another_model_or_optimizer_is_refused(
    config_path, tmp_path, key, found, other, old
):
    train(config_path, tmp_path / "run", training__max_steps=2)
    if old:
        forget_run(tmp_path / "run")
    with pytest.raises(ValueError) as caught:
        train(config_path, tmp_path / "run", resume=True, **{key: other})
    said = str(caught.value)
    assert "\n" not in said and "expected" in said
    expected = f"found a checkpoint with {key} = {found!r}; expected {other!r}"
    assert ("another model or optimizer" if old else expected) in said


@pytest.mark.parametrize("softmax", ["full", "sampled"])
def test_full_and_sampled_softmax_go_on_from_each_other(config_path, tmp_path, softmax):
    other = {"full": "sampled", "sampled": "full"}[softmax]
    settings = {"vocab__n_samples": 20, "training__max_steps": 2}
    train(config_path, tmp_path / "run", vocab__softmax=other, **settings)
    settings["training__max_steps"] = 3
    said = train(
        config_path, tmp_path / "run", resume=True, vocab__softmax=softmax, **settings
    )
    assert "Continuing from step 2" in said


@pytest.fixture
def resumed(monkeypatch):
    """The trainer that went on, and from what progress and state it did."""
    found = []
    real = Trainer.resume

    def resume(trainer, say):
        done = real(trainer, say)
        found.extend([trainer, replace(trainer.progress), trainer.state.h.clone()])
        return done

    monkeypatch.setattr(Trainer, "resume", resume)
    return found


@pytest.mark.parametrize("old", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "key, found, other",
    [
        ("training.batch_size", 4, 8),
        pytest.param("training.batch_size", 4, 2, marks=pytest.mark.slow),
        ("training.window", 6, 12),
        pytest.param("training.window", 6, 3, marks=pytest.mark.slow),
    ],
)
def test_other_streams_go_on_at_the_same_place(
    config_path, tmp_path, resumed, key, found, other, old
):
    train(config_path, tmp_path / "run", training__max_steps=11)
    if old:
        forget_run(tmp_path / "run")
    settings = {key: other, "training.max_steps": 60}
    said = train(config_path, tmp_path / "run", resume=True, **settings)
    trainer, progress, h = resumed
    n_read = 11 * 4 * 6
    n_window = trainer.settings.batch_size * trainer.settings.window
    assert (progress.step, progress.epoch) == (11, 0)
    if old and key == "training.window":  # nobody knows
        assert progress.window == 11
    else:
        assert progress.window == n_read // n_window
        assert not h.any()
        assert (
            f"written with {key} = {found} and this run has {other}: LSTM "
            "states start from zero" in said
        )
    assert trainer.progress.epoch > 0
    assert trainer.progress.window < trainer.epochs.n_windows


def test_a_place_after_the_end_of_an_epoch_is_its_end(config_path, tmp_path, resumed):
    """As a checkpoint of an older version can have it after a larger window."""
    train(config_path, tmp_path / "run", training__max_steps=11)
    forget_run(tmp_path / "run")
    for path in (tmp_path / "run").glob("checkpoints/*/facts.json"):
        facts = json.loads(path.read_text("utf8"))
        facts["progress"]["window"] = 10**6
        path.write_text(json.dumps(facts), "utf8")
    train(config_path, tmp_path / "run", resume=True)
    trainer, progress, _ = resumed
    assert progress.window == trainer.epochs.n_windows - 1
    assert (trainer.progress.epoch, trainer.progress.window) == (1, 0)
    trainer.progress.window = 10**6
    trainer.advance()
    assert (trainer.progress.epoch, trainer.progress.window) == (2, 0)


def test_another_vocabulary_is_refused(config_path, tmp_path):
    train(config_path, tmp_path / "run")
    with pytest.raises(ValueError, match="another vocabulary"):
        train(config_path, tmp_path / "run", resume=True, vocab__max_words=30)


def test_config_for_tests_is_complete(config_path):
    assert CONFIG.strip()
    assert load_config(config_path, {}).training.max_steps == 12
