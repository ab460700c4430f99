"""Checkpoints that cannot be read: the one before is used, and it is said why."""

import json
import math
import os

import pytest
import torch
from helpers.pretraining import change_facts, save_checkpoint

from spacy_elmo.fingerprints import fingerprint_data, fingerprint_path
from spacy_elmo.pretrain.checkpoints import FACTS, TENSORS, Checkpoints

HUGE = 10**400


def forge(folder):
    """Write tensors that no program can read, with the right checksum."""
    (folder / TENSORS).write_bytes(b"\xff" * 100)
    facts = {"checksum": fingerprint_path(folder / TENSORS)}
    facts["checksum_of_facts"] = fingerprint_data(facts)
    (folder / FACTS).write_text(str(facts).replace("'", '"'))


def put_pipe(path):
    path.unlink()
    os.mkfifo(path)


def remove(folder, name):
    facts = json.loads((folder / FACTS).read_text())
    del facts[name]
    (folder / FACTS).write_text(json.dumps(facts))


def rename(folder, name):
    """Change the last letter of a name, as a flipped bit does."""
    text = (folder / FACTS).read_text()
    (folder / FACTS).write_text(text.replace(f'"{name}"', f'"{name[:-1]}r"'))


DAMAGES = {
    "checksum": lambda folder: remove(folder, "checksum"),
    "checksum of facts": lambda folder: remove(folder, "checksum_of_facts"),
    "name of the checksum": lambda folder: rename(folder, "checksum_of_facts"),
    "nested": lambda folder: (folder / FACTS).write_text("[" * 10**6),
    "text": lambda folder: (folder / FACTS).write_text('"text"'),
    "forged": forge,
}
if hasattr(os, "mkfifo"):
    DAMAGES["pipe of facts"] = lambda folder: put_pipe(folder / FACTS)
    DAMAGES["pipe of tensors"] = lambda folder: put_pipe(folder / TENSORS)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_an_unreadable_checkpoint_is_passed_over(damage, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        save_checkpoint(tmp_path, step)
    damage(tmp_path / "step-2")
    said = []
    tensors, facts = checkpoints.load(said.append)
    assert facts["progress"]["step"] == 1 and tensors["a"].tolist() == [1, 1, 1]
    assert len(said) == 1 and "\n" not in said[0]
    assert said[0].startswith(f"{tmp_path / 'step-2'}: cannot be used (")


def test_folders_of_other_names_are_no_checkpoints(tmp_path):
    save_checkpoint(tmp_path, 1)
    for name in ("step-²", "step-", "step-x", "step-1.5"):
        (tmp_path / name).mkdir()
    assert Checkpoints(tmp_path).steps() == [1]


@pytest.mark.parametrize(
    "place, values",
    [
        ("progress", [None, [1], {}, {"step": 1, "more": 1}]),
        ("progress.step", ["a", -5, 1.5, True, HUGE]),
        ("progress.epoch", [-1, HUGE]),
        ("progress.window", ["x", -3]),
        ("progress.n_words", [HUGE]),
        ("progress.seconds", [math.nan, math.inf, -1.0]),
        ("progress.best", ["x", math.nan]),
        ("n_ranks", [0, "x", 3]),
        ("run", [[1]]),
        ("run.training.window", ["x", 0]),
        ("words_before", ["x"]),
        ("loss_scale", [5, ["a", "b"], [0.0, 0], [1.0, 0.5], [1.0]]),
        ("random_sizes", [None, [-1, "x"], [], [8], [8, 17]]),
        ("fingerprint", [None]),
        ("vocab", [5]),
    ],
)
def test_facts_that_no_training_saves_are_passed_over(place, values, tmp_path):
    section, _, key = place.partition(".")
    for value in values:
        for step in (1, 2):
            save_checkpoint(tmp_path, step)

        def change(facts, value=value):
            (facts[section] if key else facts)[key or section] = value

        change_facts(tmp_path / "step-2" / FACTS, change)
        said = []
        tensors, _ = Checkpoints(tmp_path).load(said.append)
        assert tensors["a"].tolist() == [1, 1, 1], value
        assert len(said) == 1 and "\n" not in said[0]


@pytest.mark.parametrize("name", ["state.h", "state.c", "random"])
def test_tensors_that_no_training_saves_are_passed_over(name, tmp_path):
    save_checkpoint(tmp_path, 1)
    tensors, facts = Checkpoints(tmp_path).load(pytest.fail)
    for changed in ({}, {name: torch.zeros(4)}):
        rest = {key: tensor for key, tensor in tensors.items() if key != name}
        Checkpoints(tmp_path).save(2, rest | changed, facts)
        said = []
        assert Checkpoints(tmp_path).load(said.append)[1] == facts
        assert f"({name}: found no tensor with" in said[0]


def test_checkpoints_of_earlier_versions_are_loaded(tmp_path):
    save_checkpoint(tmp_path, 1)
    for change in (lambda facts: facts.pop("words_before"), lambda f: f.pop("run")):
        change_facts(tmp_path / "step-1" / FACTS, change)
        assert Checkpoints(tmp_path).load(pytest.fail) is not None
