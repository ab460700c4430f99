"""The data of a model without torch: names, shapes and the forms in which weights are
stored."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
import torch
from helpers.native_models import SENTENCES, every_kind, files_of, make_bilm
from safetensors.numpy import load_file

from spacy_elmo import load_bilm
from spacy_elmo.bilm import load_data
from spacy_elmo.bilm.formats.bundled import find_bundled
from spacy_elmo.bilm.shapes import expected_shapes
from spacy_elmo.bilm.torch_data import get_data
from spacy_elmo.bilm.torch_data import make_bilm as bilm_from_data


@every_kind
def test_names_and_shapes_are_those_of_the_torch_module(kind):
    bilm = make_bilm(kind)
    expected = {name: tuple(t.shape) for name, t in bilm.state_dict().items()}
    found = expected_shapes(bilm.config, bilm.lexicon)
    assert list(found.items()) == list(expected.items())


@every_kind
def test_arrays_share_their_memory_with_the_torch_module(kind, tmp_path):
    make_bilm(kind).save(tmp_path)
    data = load_data(tmp_path)
    bilm = bilm_from_data(data)
    back = get_data(bilm)
    assert list(back.arrays) == list(data.arrays)
    for name, array in data.arrays.items():
        assert array.dtype == np.float32
        assert np.shares_memory(array, back.arrays[name]), name


def test_native_and_hdf5_files_are_read_and_written_without_torch(tmp_path):
    make_bilm("bytes-full").save(tmp_path / "native")
    code = """
import sys
sys.modules["torch"] = None  # importing it fails
import spacy_elmo.bilm.formats.native
from spacy_elmo.bilm.formats.sources import load_data, save_data
folder = sys.argv[1]
data = load_data(folder + "/native")
save_data(data, folder + "/hdf5", "hdf5")
save_data(load_data(folder + "/hdf5"), folder + "/back")
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = load_bilm(tmp_path / "native").embed(SENTENCES)
    for one, two in zip(load_bilm(tmp_path / "back").embed(SENTENCES), expected):
        np.testing.assert_array_equal(one, two)


# Stored precision


@pytest.fixture(params=["float16", "int8"])
def small(request, tmp_path):
    """Write a model in fewer bits and return its folder."""
    make_bilm("chars-cnn-words").save(tmp_path / "small", dtype=request.param)
    return tmp_path / "small"


def test_saving_keeps_the_bits_that_were_loaded(small, tmp_path):
    bilm = load_bilm(small)
    bilm.save(tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(small)
    for one, two in zip(
        bilm.embed(SENTENCES), load_bilm(tmp_path / "again").embed(SENTENCES)
    ):
        np.testing.assert_array_equal(one, two)


def test_changed_weights_are_saved_as_float32(small, tmp_path):
    bilm = load_bilm(small)
    name = "forward_layers.0.weight"
    with torch.no_grad():
        bilm.forward_layers[0].weight[0, 0] += 1e-6
    bilm.save(tmp_path / "again")
    before = load_file(small / "weights.safetensors")
    after = load_file(tmp_path / "again" / "weights.safetensors")
    assert after[name].dtype == np.float32
    np.testing.assert_array_equal(after[name], bilm.forward_layers[0].weight.detach())
    assert after["backward_layers.0.weight"].dtype == (
        before["backward_layers.0.weight"].dtype
    )


def test_float32_can_be_asked_for(small, tmp_path):
    bilm = load_bilm(small)
    bilm.save(tmp_path / "again", dtype="float32")
    arrays = load_file(tmp_path / "again" / "weights.safetensors")
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    for name, array in load_data(tmp_path / "again").arrays.items():
        np.testing.assert_array_equal(array, bilm.data.arrays[name])


def test_a_pipeline_is_as_small_as_its_bilm():
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo")
    expected = nlp("A bad word").tensor
    contents = elmo.model.to_bytes()
    folder = find_bundled("en_elmo_sm")
    assert len(contents) < 1.01 * (folder / "weights.safetensors").stat().st_size
    other = spacy.blank("en")
    other.add_pipe("elmo").model.from_bytes(contents)
    np.testing.assert_array_equal(other("A bad word").tensor, expected)
    assert other.get_pipe("elmo").model.to_bytes() == contents
