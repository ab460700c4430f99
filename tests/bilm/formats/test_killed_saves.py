"""Saving over a native folder in a process that is killed at each of its steps: the
folder holds the old model or the new one."""

import os
import shutil

import numpy as np
import pytest
from helpers.forks import kill_before_event
from helpers.native_models import expected_files, make_bilm

from spacy_elmo.bilm import load_data

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
# Models with all kinds of files, with some of them and with few, and the same sizes.
PAIRS = [
    ("chars-cnn-words", "bytes"),
    ("bytes", "chars-cnn-words"),
    ("bytes-full", "bytes-softmax-without-words"),
    ("bytes-full", "bytes-full"),
]


def same(one, other):
    return (
        (one.config, one.lexicon, one.vocab)
        == (other.config, other.lexicon, other.vocab)
    ) and all(np.array_equal(a, other.arrays[k]) for k, a in one.arrays.items())


def kill_points(work):
    """Do some work again and again, killed at one step later each time, until it is
    done. Yield the number of the step after each time."""
    number = 0
    while code := kill_before_event(work, number):
        assert code == -9
        yield number
        number += 1


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_killed_save_leaves_the_old_model_or_the_new_one(first, second, tmp_path):
    old, new = make_bilm(first, seed=1), make_bilm(second, seed=2)
    folder = tmp_path / "model"
    old.save(tmp_path / "old")
    (tmp_path / "old" / "README.md").write_text("mine")
    shutil.copytree(tmp_path / "old", folder)
    found = []
    for _ in kill_points(lambda: new.save(folder)):
        data = load_data(folder)
        found.append(same(data, new.data))
        assert found[-1] or same(data, old.data)
        assert (folder / "README.md").read_text() == "mine"
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "old", folder)
    assert found == sorted(found) and {*found} == {False, True}
    assert same(load_data(folder), new.data)
    assert {*os.listdir(folder)} == expected_files(second) | {"README.md"}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_save_after_killed_ones_is_complete(first, second, tmp_path):
    old, new = make_bilm(first, seed=1), make_bilm(second, seed=2)
    old.save(tmp_path)
    for _ in kill_points(lambda: new.save(tmp_path)):
        data = load_data(tmp_path)  # what the killed ones before have left is there
        assert same(data, new.data) or same(data, old.data)
    old.save(tmp_path)
    assert same(load_data(tmp_path), old.data)
    names = {name for name in os.listdir(tmp_path) if not name.endswith(".part")}
    assert names == expected_files(first)
