"""Use loggers of spaCy in a pretraining."""

import sys
from types import ModuleType

import pytest
import spacy
from helpers.command import call, text
from helpers.pretraining import load_log

from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.pretrain.progress import JsonLog

SEEN = []


@spacy.registry.loggers("spacy_elmo.test_logger.v1")
def make_logger(name: str):
    def setup(nlp, stdout, stderr):
        SEEN.append((name, nlp.pipe_names, nlp.config["pretraining"]))

        def finalize():
            SEEN.append("end")

        return SEEN.append, finalize

    return setup


def train(config_path, output, **logger):
    overrides = {f"logger.{key}": value for key, value in logger.items()}
    said = []
    pretrain(load_config(config_path, overrides), output, say=said.append)
    return said, load_log(output / "log.jsonl")


@pytest.mark.slow
def test_console_of_spacy(config_path, tmp_path, capsys):
    logger = {"@loggers": "spacy.ConsoleLogger.v1"}
    said, log = train(config_path, tmp_path / "run", **logger)
    out = capsys.readouterr().out
    assert "LOSS ELMO" in out and "SCORE" in out
    rows = [row.split() for row in out.splitlines() if row.split()[0].isdigit()]
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    assert [int(row[1]) for row in rows] == [4, 8, 12]
    assert [row[-1] for row in rows] == [f"{-e['mean']:.2f}" for e in evaluations]
    # The logger replaces the table of evaluations.
    assert not any("backward" in line for line in said)


@pytest.mark.slow
def test_a_logger_is_told_as_by_spacy_train(config_path, tmp_path):
    SEEN.clear()
    logger = {"@loggers": "spacy_elmo.test_logger.v1", "name": "x"}
    _, log = train(config_path, tmp_path / "run", **logger)
    (name, pipes, config), *calls, end = SEEN
    assert (name, pipes, end) == ("x", ["elmo"], "end")
    assert config["training"]["max_steps"] == 12
    assert len(calls) == 12 + 3  # 12 steps and 3 evaluations
    infos = [info for info in calls if info is not None]
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    for info, entry in zip(infos, evaluations):
        assert info["step"] == entry["step"]
        assert info["score"] == pytest.approx(-entry["mean"])
        assert info["other_scores"]["perplexity"] == pytest.approx(entry["mean"])
        assert info["losses"]["elmo"] > 0
    best = max(infos[-1]["checkpoints"])
    assert best[0] == pytest.approx(max(info["score"] for info in infos))


WANDB = {
    "@loggers": "spacy.WandbLogger.v5",
    "project_name": "tiny",
    "log_custom_stats": ["^step$", "^words$"],  # not logged by default
}


@pytest.fixture
def wandb(monkeypatch):
    """Replace the package wandb by a module that stores what spaCy's logger passes."""
    module = ModuleType("wandb")
    module.begun, module.logged, module.ended = [], [], []
    module.init = lambda **options: module.begun.append(options)
    module.log = module.logged.append
    module.join = lambda: module.ended.append(len(module.logged))
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.fixture
def losses(monkeypatch):
    """Return a list that gets the summed loss of both directions after each step. The
    log has only some steps."""
    found = []

    def step(log, report):
        found.append(report.forward + report.backward)

    monkeypatch.setattr(JsonLog, "step", step)
    return found


@pytest.mark.slow
def test_weights_and_biases(config_path, tmp_path, wandb, losses):
    said, log = train(config_path, tmp_path / "run", **WANDB)
    [begun] = wandb.begun
    assert begun["project"] == "tiny"
    assert begun["config"]["pretraining"]["training"]["max_steps"] == 12
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    # Each evaluation makes five calls: score, loss, perplexities, step and words.
    parts = [wandb.logged[at : at + 5] for at in range(0, len(wandb.logged), 5)]
    assert len(parts) == len(evaluations) == 3
    for part, entry in zip(parts, evaluations):
        told = {key: value for logged in part for key, value in logged.items()}
        assert told == {
            "score": pytest.approx(-entry["mean"]),
            "loss_elmo": pytest.approx(sum(losses[entry["step"] - 4 : entry["step"]])),
            "perplexity": pytest.approx(entry["mean"]),
            "perplexity_forward": pytest.approx(entry["forward"]),
            "perplexity_backward": pytest.approx(entry["backward"]),
            "step": entry["step"],
            "words": entry["step"] * 4 * 6,
        }
    assert [entry["step"] for entry in evaluations] == [4, 8, 12]
    assert wandb.ended == [len(wandb.logged)]
    assert not any("backward" in line for line in said)


def test_weights_and_biases_that_is_not_there(config_path, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    args = ["pretrain", config_path, "--output", tmp_path / "run"]
    args += ["--logger.@loggers", WANDB["@loggers"], "--logger.project_name", "tiny"]
    done = call(*args)
    assert done.exit_code == 1
    assert "logger: The 'wandb' library could not be found" in text(done)
    assert "Traceback" not in done.output and isinstance(done.exception, SystemExit)
    # The error comes before the text is tokenized, which may take hours.
    assert not (tmp_path / "run").exists()
