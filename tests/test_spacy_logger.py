"""Loggers of spaCy in a pretraining."""

import pytest
import spacy
from pretraining import write_config, write_text

from spacy_elmo.pretrain.config import load_config
from spacy_elmo.pretrain.run import pretrain, read_log

SEEN = []


@spacy.registry.loggers("spacy_elmo.test_logger.v1")
def make_logger(name: str):
    def setup(nlp, stdout, stderr):
        SEEN.append((name, nlp.pipe_names, nlp.config["pretraining"]))

        def finalize():
            SEEN.append("end")

        return SEEN.append, finalize

    return setup


@pytest.fixture
def config_path(tmp_path):
    return write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))


def train(config_path, output, **logger):
    overrides = {f"logger.{key}": value for key, value in logger.items()}
    said = []
    pretrain(load_config(config_path, overrides), output, say=said.append)
    return said, read_log(output / "log.jsonl")


def test_console_of_spacy(config_path, tmp_path, capsys):
    logger = {"@loggers": "spacy.ConsoleLogger.v1"}
    said, log = train(config_path, tmp_path / "run", **logger)
    out = capsys.readouterr().out
    assert "LOSS ELMO" in out and "SCORE" in out
    rows = [row.split() for row in out.splitlines() if row.split()[0].isdigit()]
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    assert [int(row[1]) for row in rows] == [4, 8, 12]
    assert [row[-1] for row in rows] == [f"{-e['mean']:.2f}" for e in evaluations]
    # It takes the place of our own table.
    assert not any("ppl mean" in line for line in said)


def test_a_logger_is_told_as_by_spacy_train(config_path, tmp_path):
    SEEN.clear()
    logger = {"@loggers": "spacy_elmo.test_logger.v1", "name": "x"}
    _, log = train(config_path, tmp_path / "run", **logger)
    (name, pipes, config), *calls, end = SEEN
    assert (name, pipes, end) == ("x", ["elmo"], "end")
    assert config["training"]["max_steps"] == 12
    assert len(calls) == 12 + 3  # each step, and the evaluations
    infos = [info for info in calls if info is not None]
    evaluations = [entry for entry in log if entry["type"] == "evaluation"]
    for info, entry in zip(infos, evaluations):
        assert info["step"] == entry["step"]
        assert info["score"] == pytest.approx(-entry["mean"])
        assert info["other_scores"]["perplexity"] == pytest.approx(entry["mean"])
        assert info["losses"]["elmo"] > 0
    best = max(infos[-1]["checkpoints"])
    assert best[0] == pytest.approx(max(info["score"] for info in infos))
