"""Checkpoints that cannot be read: the one before is used, and it is said why."""

import json
import os

import pytest
import torch

from spacy_elmo.fingerprints import fingerprint_data, fingerprint_path
from spacy_elmo.pretrain.checkpoints import FACTS, TENSORS, Checkpoints


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
        checkpoints.save(step, {"a": torch.ones(3) * step}, {"n": step})
    damage(tmp_path / "step-2")
    said = []
    tensors, facts = checkpoints.load(said.append)
    assert facts["n"] == 1 and tensors["a"].tolist() == [1, 1, 1]
    assert len(said) == 1 and "\n" not in said[0]
    assert said[0].startswith(f"{tmp_path / 'step-2'}: cannot be used (")


def test_folders_of_other_names_are_no_checkpoints(tmp_path):
    Checkpoints(tmp_path).save(1, {"a": torch.ones(3)}, {})
    for name in ("step-²", "step-", "step-x", "step-1.5"):
        (tmp_path / name).mkdir()
    assert Checkpoints(tmp_path).steps() == [1]
