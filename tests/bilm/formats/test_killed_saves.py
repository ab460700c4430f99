"""Saving over a folder in a process that is killed at each of its steps: the folder
holds the old model or the new one. Two processes that save to one folder at the same
time."""

import os
import shutil

import numpy as np
import pytest
from helpers.command import call
from helpers.forks import fork, kill_before_event, wait
from helpers.native_models import make_bilm

from spacy_elmo.bilm import load_data
from spacy_elmo.bilm.formats.hdf5 import FILES
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.files import one_writer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# Models with all kinds of files, with some of them and with few, and the same sizes.
PAIRS = [
    ("native", "chars-cnn-words", "bytes"),
    ("native", "bytes", "chars-cnn-words"),
    ("native", "bytes-full", "bytes-softmax-without-words"),
    ("native", "bytes-full", "bytes-full"),
    ("hdf5", "bytes-full", "bytes-softmax-without-words"),
    ("hdf5", "bytes-softmax-without-words", "bytes-full"),
    ("hdf5", "bytes-full", "bytes-full"),
    ("hdf5", "bytes-full", "bytes"),
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


def other_words(bilm):
    """Let a model have its last two words in another order."""
    if bilm.vocab:
        bilm.vocab = [*bilm.vocab[:-2], bilm.vocab[-1], bilm.vocab[-2]]
    return bilm


@pytest.mark.slow
@pytest.mark.parametrize(("format", "first", "second"), PAIRS)
def test_a_killed_save_leaves_the_old_model_or_the_new_one(
    format, first, second, tmp_path
):
    new = other_words(make_bilm(second, seed=2))
    save_bilm(make_bilm(first, seed=1), tmp_path / "old", format=format)
    save_bilm(new, tmp_path / "new", format=format)
    names = {*os.listdir(tmp_path / "new"), "README.md"}
    old_data, new_data = (load_data(tmp_path / name) for name in ("old", "new"))
    folder = tmp_path / "model"
    (tmp_path / "old" / "README.md").write_text("mine")
    shutil.copytree(tmp_path / "old", folder)
    found = []
    for _ in kill_points(lambda: save_bilm(new, folder, format=format)):
        data = load_data(folder)
        found.append(same(data, new_data))
        assert found[-1] or same(data, old_data)
        assert (folder / "README.md").read_text() == "mine"
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "old", folder)
    assert found == sorted(found) and {*found} == {False, True}
    assert same(load_data(folder), new_data)
    assert {*os.listdir(folder)} == names


@pytest.mark.slow
@pytest.mark.parametrize(("format", "first", "second"), PAIRS)
def test_a_save_after_killed_ones_is_complete(format, first, second, tmp_path):
    old, new = make_bilm(first, seed=1), make_bilm(second, seed=2)
    folder = tmp_path / "model"
    save_bilm(new, folder, format=format)
    new_data = load_data(folder)
    save_bilm(old, folder, format=format)
    old_data, names = load_data(folder), {*os.listdir(folder)}
    for _ in kill_points(lambda: save_bilm(new, folder, format=format)):
        data = load_data(folder)  # what the killed ones before have left is there
        assert same(data, new_data) or same(data, old_data)
    save_bilm(old, folder, format=format)
    assert same(load_data(folder), old_data)
    assert {*os.listdir(folder)} == names


@pytest.mark.slow
@pytest.mark.parametrize("format", ["native", "hdf5"])
def test_a_killed_conversion_to_an_empty_folder_can_be_repeated(format, tmp_path):
    bilm = make_bilm("bytes-full")
    bilm.save(tmp_path / "source")
    save_bilm(bilm, tmp_path / "whole", format=format)
    expected = load_data(tmp_path / "whole")
    (tmp_path / "dest").mkdir()
    for _ in kill_points(lambda: save_bilm(bilm, tmp_path / "dest", format=format)):
        shutil.copytree(tmp_path / "dest", tmp_path / "copy")
        done = call("convert", tmp_path / "source", tmp_path / "copy", "--to", format)
        assert done.exit_code == 0, done.output
        assert same(load_data(tmp_path / "copy"), expected)
        shutil.rmtree(tmp_path / "copy")
        shutil.rmtree(tmp_path / "dest")
        (tmp_path / "dest").mkdir()


@pytest.mark.parametrize("given", ["options.json", "weights.hdf5"])
def test_a_killed_save_is_found_by_either_file(given, tmp_path):
    old, new = (make_bilm("bytes-full", seed=seed) for seed in (1, 2))
    save_bilm(new, tmp_path / "new", format="hdf5")
    expected = load_data(tmp_path / "new")
    save_bilm(old, tmp_path / "model", format="hdf5")
    (tmp_path / "new").rename(tmp_path / "model" / FILES.new)
    for name in (FILES.weights, *FILES.optional, FILES.config):
        assert same(load_data(tmp_path / "model" / given), expected)
        (tmp_path / "model" / FILES.new / name).replace(tmp_path / "model" / name)
    assert same(load_data(tmp_path / "model" / given), expected)


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
