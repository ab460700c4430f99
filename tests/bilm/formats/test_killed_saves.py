"""Saving over a folder in a process that is killed at each of its steps: a native
folder holds the old model or the new one, and files of two HDF5 models are not loaded.
Two processes that save to one folder at the same time."""

import os
import shutil

import numpy as np
import pytest
from helpers.forks import fork, kill_before_event, wait
from helpers.native_models import expected_files, make_bilm

from spacy_elmo.bilm import SourceError, load_data
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.files import one_writer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("bytes-full", "bytes-softmax-without-words"),
        ("bytes-softmax-without-words", "bytes-full"),
        ("bytes-full", "bytes-full"),
    ],
)
def test_a_killed_save_leaves_no_mix_of_hdf5_files(first, second, tmp_path):
    new = make_bilm(second, seed=2)
    if new.vocab:
        new.vocab = [*new.vocab[:-2], new.vocab[-1], new.vocab[-2]]
    save_bilm(make_bilm(first, seed=1), tmp_path / "old", format="hdf5")
    save_bilm(new, tmp_path / "new", format="hdf5")
    expected = [load_data(tmp_path / name) for name in ("old", "new")]
    folder = tmp_path / "model"
    shutil.copytree(tmp_path / "old", folder)
    errors = []
    for _ in kill_points(lambda: save_bilm(new, folder, format="hdf5")):
        try:
            data = load_data(folder)
        except SourceError as error:
            errors.append(str(error))
        else:
            assert any(same(data, model) for model in expected)
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "old", folder)
    assert all(error.startswith(str(folder)) for error in errors) and errors
    assert same(load_data(folder), expected[1])


@pytest.mark.parametrize("format", ["native", "hdf5"])
def test_a_second_process_that_saves_is_told_of_the_first(format, tmp_path):
    old = make_bilm("bytes-full", seed=1)
    save_bilm(old, tmp_path, format=format)
    expected = load_data(tmp_path)
    with one_writer(tmp_path):
        with pytest.raises(OSError, match="process [0-9]+ on .* is writing it"):
            save_bilm(make_bilm("bytes"), tmp_path, format=format)
        assert same(load_data(tmp_path), expected)
    save_bilm(make_bilm("bytes"), tmp_path, format=format)
    assert not same(load_data(tmp_path), expected)


@pytest.mark.parametrize("format", ["native", "hdf5"])
@pytest.mark.parametrize("n_trials", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_two_processes_save_to_one_folder(format, n_trials, tmp_path):
    first, second = make_bilm("bytes-full", seed=1), make_bilm("bytes", seed=2)
    expected = []
    for bilm in (first, second):
        save_bilm(bilm, tmp_path / "one", format=format)
        expected.append(load_data(tmp_path / "one"))
    for _ in range(n_trials):
        children = [
            fork(lambda bilm=bilm: save_bilm(bilm, tmp_path / "two", format=format))
            for bilm in (first, second)
        ]
        codes = [wait(child) for child in children]
        assert 0 in codes and {*codes} <= {0, 1}
        found = load_data(tmp_path / "two")
        assert any(same(found, data) for data in expected)
