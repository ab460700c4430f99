"""Pretrain from a config, and load the trained models."""

import math
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from helpers.command import call, text
from helpers.pretraining import load_log, train, write_text

from spacy_elmo import load_bilm
from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.training.stacked_lstm import compile_steps
from spacy_elmo.bilm.training.step import Dropout, train_step
from spacy_elmo.pretrain import pretraining
from spacy_elmo.pretrain.initial_bilm import make_bilm
from spacy_elmo.pretrain.optimizers import Adagrad
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import check_precision, open_corpus, pretrain
from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.pretrain.text_perplexity import measure_text
from spacy_elmo.pretrain.trainer import Trainer
from spacy_elmo.text.text_files import find_files
from spacy_elmo.text.tokenizers import Tokenization


@pytest.fixture(autouse=True)
def not_for_ever(monkeypatch):
    """Let a test fail, rather than run for ever, if a limit does not work."""
    real = Trainer.step

    def step(trainer):
        assert trainer.progress.step < 500
        real(trainer)

    monkeypatch.setattr(Trainer, "step", step)


def make_trainer(config_path, output, **overrides):
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    config = load_config(config_path, named)
    ranks = Ranks(torch.device("cpu"))
    corpus = open_corpus(config, output, ranks, lambda said: None)
    torch.manual_seed(0)
    reports = []
    bilm, _ = make_bilm(config, corpus)
    trainer = Trainer(config, bilm, corpus, output, ranks, on_step=reports.append)
    return trainer, reports


# Inputs


def test_an_empty_name_is_no_text(config_path, tmp_path, monkeypatch):
    """An empty name must not stand for the current folder."""
    monkeypatch.chdir(tmp_path)
    config = load_config(config_path, {"paths.dev_text": ""})
    found = open_corpus(config, tmp_path / "run", Ranks(torch.device("cpu")), print)
    without = open_corpus(
        load_config(config_path, {}), tmp_path / "b", Ranks(torch.device("cpu")), print
    )
    assert found.meta["dev"] == without.meta["dev"]
    with pytest.raises(ValueError, match="empty name"):
        find_files(["", str(tmp_path)])


def test_the_only_document_is_not_held_out(config_path, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "A b c. D e f g."}', "utf8")
    found = {"paths.raw_text": str(path), "corpus.dev_share": 0.999}
    config = load_config(config_path, found)
    corpus = open_corpus(config, tmp_path / "run", Ranks(torch.device("cpu")), print)
    assert corpus.meta["train"]["n_words"] == 7 and not len(corpus.dev.tokens)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_precision_that_the_device_has_not(monkeypatch, precision):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    check_precision("float32", "cpu")
    with pytest.raises(ValueError, match=f"training.precision is {precision} and"):
        check_precision(precision, "cpu")


def test_a_missing_compiler_is_named(config_path, tmp_path, monkeypatch):
    def compile(function):
        raise RuntimeError("no C++ compiler\nlong explanation")

    monkeypatch.setattr(torch, "compile", compile)
    expected = r"torch cannot compile for the device, cpu \(no C\+\+ compiler\); set"
    with pytest.raises(ValueError, match=expected):
        train(config_path, tmp_path / "run", training__compile=True)


@pytest.mark.slow
def test_bfloat16_never_kills_the_program():
    """Some virtual machines announce AMX and kill programs that use it."""
    code = """
import torch
from spacy_elmo.pretrain.pretraining import check_precision
check_precision("bfloat16", "cpu")
torch.ones(64, 64, dtype=torch.bfloat16) @ torch.ones(64, 64, dtype=torch.bfloat16)
"""
    environment = {k: v for k, v in os.environ.items() if k != "ONEDNN_MAX_CPU_ISA"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    refused = "ValueError: training.precision is bfloat16 and" in done.stderr
    assert done.returncode == (1 if refused else 0), done.stderr


# The command


def test_command_with_overrides(config_path, tmp_path):
    out = tmp_path / "run"
    args = ["--training.max_steps", 2, "--vocab.max_words=20", "--training.seed", 7]
    done = call("pretrain", config_path, "--output", out, *args)
    assert done.exit_code == 0, done.output
    assert "The softmax knows 20 words" in text(done)
    config = load_log(out / "log.jsonl")[0]["config"]
    assert (config["training"]["max_steps"], config["training"]["seed"]) == (2, 7)
    bilm = load_bilm(out / "model-last")
    assert bilm.config.training["steps"] == 2 and len(bilm.vocab) == 20
    info = call("info", out / "model-last")
    assert info.exit_code == 0
    for fact in ("steps", "total words", "seconds", "train, n documents", "lang"):
        assert fact in info.output


@pytest.mark.slow
def test_command_without_a_config(config_path, tmp_path):
    """Give the options in several orders. The sizes are made small by options too."""
    raw_text = load_config(config_path, {}).paths.raw_text
    small = ["--model.lstm.dim", 8, "--model.lstm.projection_dim=4"]
    small += ["--model.encoder.filters", "[[1, 4]]", "--training.batch_size", 4]
    given = ["--paths.raw_text", raw_text, "--corpus.lang", "fi", *small]
    given += ["--training.max_steps", 2, "--vocab.min_count", 1]
    for number, args in enumerate(
        (
            ["--output", tmp_path / "0", *given],
            [*given, "--output", tmp_path / "1"],
            ["--training.seed=1", "--output", tmp_path / "2", *given],
        )
    ):
        done = call("pretrain", *args)
        assert done.exit_code == 0, done.output
        bilm = load_bilm(tmp_path / str(number) / "model-best")
        assert bilm.config.training["lang"] == "fi" and bilm.config.width == 8


def test_command_without_a_config_needs_text(tmp_path):
    for args in ([], ["--corpus.lang", "fi"]):
        done = call("pretrain", "--output", tmp_path / "run", *args)
        assert done.exit_code == 1 and "paths.raw_text is not set" in text(done)


@pytest.mark.parametrize(
    "args, expected",
    [
        (["--training.steps", 3], "training.steps is not a setting"),
        (["--training.batch_size", 1000], "expected batch_size * window = 6,000"),
        (["--paths.raw_text", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--corpus.lang", "qq"], "the language 'qq'"),
        (["--paths.initialize_from", "nowhere"], "nowhere: no such file or folder"),
        (["--paths.output_vocab", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--training.precision", "float16"], "training.precision is float16"),
        (["--gpu-id", 0], "torch sees no GPU"),
    ],
)
def test_command_says_one_sentence(config_path, tmp_path, monkeypatch, args, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = call("pretrain", config_path, "--output", tmp_path / "run", *args)
    assert done.exit_code == 1
    assert expected in text(done) and "Traceback" not in done.output


@pytest.mark.parametrize(
    "overrides, expected",
    [
        ({"paths.initialize_from": "nowhere"}, "nowhere: no such file or folder"),
        ({"paths.output_vocab": "nowhere.txt"}, r"nowhere\.txt: no such file"),
        ({"paths.dev_text": "nowhere.txt"}, r"nowhere\.txt: no such file"),
        ({"logger.@loggers": "nowhere.v1"}, r"^logger: .*nowhere\.v1"),
        ({"logger.name": "x"}, r"^logger is .*; expected @loggers"),
        (
            {"logger.@loggers": "spacy.ConsoleLogger.v1", "logger.x": 1},
            r"^logger: .*unexpected argument: 'x'",
        ),
        (
            {"training.max_steps": 0, "training.patience": 1, "corpus.dev_share": 0.0},
            "patience is the only limit",
        ),
    ],
)
def test_found_before_the_text_is_read(
    config_path, tmp_path, monkeypatch, overrides, expected
):
    def build(*args, **options):
        raise AssertionError("too late")

    monkeypatch.setattr(pretraining, "build_corpus", build)
    config = load_config(config_path, overrides)
    with pytest.raises(ValueError, match=expected) as caught:
        pretrain(config, tmp_path / "run", say=lambda said: None)
    assert "\n" not in str(caught.value)


# Training


@pytest.mark.parametrize("softmax", ["full", "sampled", "adaptive"])
@pytest.mark.slow
def test_training_learns(config_path, tmp_path, softmax):
    said, log = train(
        config_path,
        tmp_path / "run",
        training__max_steps=40,
        training__eval_frequency=20,
        training__optimizer__learn_rate=0.02,
        vocab__softmax=softmax,
        vocab__n_samples=30,
    )
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    assert [entry["step"] for entry in evaluations] == [20, 40]
    means = [entry["mean"] for entry in evaluations]
    n_words = len(load_bilm(tmp_path / "run" / "model-last").vocab)
    # Not the losses of single steps: a batch has 24 words, so they go up and down.
    for direction in ("forward", "backward"):
        assert evaluations[-1][direction] < 0.6 * n_words
    best = load_bilm(tmp_path / "run" / "model-best")
    assert best.config.training["perplexity"]["mean"] == min(means)
    assert f"{min(means):.1f}" in said and "held out" in said


@pytest.mark.slow
def test_best_model_is_the_one_that_was_measured(config_path, tmp_path):
    dev = write_text(tmp_path / "dev.txt", n_documents=5, seed=1)
    train(config_path, tmp_path / "run", paths__dev_text=str(dev))
    best = load_bilm(tmp_path / "run" / "model-best")
    found = measure_text(best, [str(dev)], Tokenization("xx")).as_dict()
    kept = best.config.training["perplexity"]
    assert found.keys() == kept.keys()
    for key, value in kept.items():
        assert found[key] == pytest.approx(value)


@pytest.mark.parametrize(
    "limits, n_steps",
    [
        ({"max_steps": 3}, 3),
        ({"max_words": 100}, 5),  # 24 words per step
        ({"max_minutes": 1e-9}, 1),
        ({"max_steps": 5, "max_words": 49, "max_minutes": 100.0}, 3),
        ({"patience": 2, "eval_frequency": 1}, 3),  # learn_rate is too low
    ],
)
def test_limits(config_path, tmp_path, limits, n_steps):
    settings = {"max_steps": 0, "optimizer__learn_rate": 1e-30, **limits}
    named = {f"training__{key}": value for key, value in settings.items()}
    train(config_path, tmp_path / "run", **named)
    bilm = load_bilm(tmp_path / "run" / "model-last")
    assert bilm.config.training["steps"] == n_steps


@pytest.mark.slow
def test_without_text_held_out_the_last_model_is_the_best(config_path, tmp_path):
    _, log = train(config_path, tmp_path / "run", corpus__dev_share=0.0)
    assert not any(entry["type"] == "evaluation" for entry in log)
    last, best = (tmp_path / "run" / f"model-{name}" for name in ("last", "best"))
    assert load_bilm(best).config == load_bilm(last).config
    for path in last.iterdir():
        assert (best / path.name).read_bytes() == path.read_bytes()


def test_patience_alone_needs_text_held_out(config_path, tmp_path):
    one = write_text(tmp_path / "one.txt", n_documents=1)
    overrides = {"max_steps": 0, "patience": 2, "batch_size": 1, "window": 2}
    named = {f"training__{key}": value for key, value in overrides.items()}
    with pytest.raises(ValueError, match="patience is the only limit") as caught:
        train(config_path, tmp_path / "run", paths__raw_text=str(one), **named)
    assert "\n" not in str(caught.value)
    two = write_text(tmp_path / "two.txt", n_documents=2)
    named.update(training__eval_frequency=1, training__optimizer__learn_rate=1e-30)
    train(config_path, tmp_path / "run", paths__raw_text=str(two), **named)
    assert load_bilm(tmp_path / "run" / "model-best").config.training["steps"] == 1
    assert load_bilm(tmp_path / "run" / "model-last").config.training["steps"] == 3


@pytest.mark.slow
def test_epochs_are_a_limit(config_path, tmp_path):
    trainer, reports = make_trainer(
        config_path,
        tmp_path,
        training__max_steps=0,
        training__max_epochs=2,
        training__eval_frequency=1000,
    )
    trainer.run()
    assert len(reports) == 2 * trainer.epochs.n_windows
    assert reports[-1].progress.epoch == 2
    assert not trainer.state.h.any()  # each epoch starts from zero states


def test_patience_does_not_change_the_learning_rate(config_path, tmp_path):
    trainer, _ = make_trainer(
        config_path,
        tmp_path,
        training__patience=4,
        training__schedule__decay="linear",
    )
    trainer.progress.step, rate = 6, trainer.config.optimizer.learn_rate
    trainer.progress.since_best = 3
    assert trainer.learn_rate() == pytest.approx(rate / 2)


@pytest.mark.slow
def test_compiled_training_has_the_same_losses(config_path, tmp_path, monkeypatch):
    """Let torch.compile run graphs without compiling kernels, which takes less time."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    compile_steps.cache_clear()
    losses = []
    for compiled in (False, True):
        trainer, reports = make_trainer(
            config_path, tmp_path, training__compile=compiled
        )
        for _ in range(3):
            trainer.step()
        losses += [x for report in reports for x in (report.forward, report.backward)]
        # The steps of the forward and of the backward pass are compiled.
        assert compile_steps.cache_info().currsize == (2 if compiled else 0)
    compile_steps.cache_clear()
    assert losses[6:] == pytest.approx(losses[:6], rel=1e-5)


def test_step_accumulates_windows(config_path, tmp_path):
    settings = {
        "training__dropout": 0.0,
        "training__clip_norm": 0.0,
        "training__optimizer__name": "adagrad",
    }
    trainer, _ = make_trainer(config_path, tmp_path, training__accumulate=3, **settings)
    other, _ = make_trainer(config_path, tmp_path, **settings)
    bilm, state, total = other.bilm, other.state, {}
    for number in range(3):
        window = other.window_encoder.encode(other.epochs.window(0, number))
        step = train_step(bilm, window, state, Dropout(0.0, 0, bilm.device))
        state = step.state
        for name, gradient in step.gradients.items():
            total[name] = total.get(name, 0) + gradient / 3
    adagrad = Adagrad({name: weight.data for name, weight in other.weights.items()})
    for name, gradient in total.items():
        adagrad.step(name, gradient, trainer.config.optimizer.learn_rate)
    trainer.step()
    assert trainer.progress.window == 3
    torch.testing.assert_close(trainer.state, State(*state))
    for name, weight in trainer.weights.items():
        torch.testing.assert_close(weight, other.weights[name])


def test_sum_over_window_and_clipping(config_path, tmp_path):
    norms = []
    for sum_over_window in (False, True):
        trainer, reports = make_trainer(
            config_path,
            tmp_path,
            training__sum_over_window=sum_over_window,
            training__clip_norm=1e-3,
            training__optimizer__name="adagrad",
            training__optimizer__initial_accumulator=1.0,
        )
        weights = {name: w.detach() for name, w in trainer.weights.items()}
        before = {name: w.clone() for name, w in weights.items()}
        trainer.step()
        norms.append(reports[0].norm)
        moved = [float((w - before[n]).norm()) for n, w in weights.items()]
        rate = trainer.config.optimizer.learn_rate
        assert math.hypot(*moved) == pytest.approx(1e-3 * rate, rel=1e-2)
    assert norms[1] == pytest.approx(trainer.config.window * norms[0], rel=1e-5)
