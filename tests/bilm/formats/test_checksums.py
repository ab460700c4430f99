"""Damage that leaves files readable: noticed by checksums and finite values."""

import numpy as np
import pytest
import srsly
from helpers.hdf5_models import small_model, write_pair
from helpers.models import refusal
from helpers.native_models import (
    SENTENCES,
    drop_checksums,
    load_json,
    make_bilm,
)
from safetensors.numpy import load_file, save_file

from spacy_elmo.bilm import SourceError, load_bilm, load_data
from spacy_elmo.bilm.formats.bundled import bundled_names, find_bundled
from spacy_elmo.bilm.formats.native import load_native_parts, native_parts

FILES = ["weights.safetensors", "softmax.safetensors", "vocab.txt", "lexicon.json"]


@pytest.fixture
def folder(tmp_path):
    """Write a native folder with every kind of file."""
    make_bilm("chars-cnn-words").save(tmp_path / "model")
    return tmp_path / "model"


def flip(path, place):
    contents = bytearray(path.read_bytes())
    contents[place] ^= 1
    path.write_bytes(contents)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("part", [0.5, 0.75, 0.98])
def test_a_flipped_bit_is_refused_with_the_name_of_the_file(name, part, folder):
    flip(folder / name, int(part * (folder / name).stat().st_size))
    assert refusal(folder)[0] == str(folder / name)


@pytest.mark.parametrize("key", ['"forget_bias": 1.0', '"max_chars": 20', '"lang"'])
def test_a_changed_config_is_refused(key, tmp_path):
    bilm = make_bilm("bytes-full")
    bilm.config.training["lang"] = "xx"
    try:
        bilm.save(tmp_path)
    finally:
        del bilm.config.training["lang"]
    path = tmp_path / "config.json"
    text = path.read_text("utf8")
    assert key in text
    changed = key.replace("1.0", "1.5").replace("20", "21").replace("lang", "long")
    path.write_text(text.replace(key, changed), "utf8")
    assert refusal(tmp_path)[0] == str(path)


@pytest.mark.parametrize("value", [None, [], "none", {}, {"config.json": "x"}])
def test_checksums_of_another_form_are_refused(value, folder):
    config = load_json(folder / "config.json")
    config["checksums"] = value
    srsly.write_json(folder / "config.json", config)
    assert refusal(folder)[0] == str(folder / "config.json")


def test_saving_again_writes_new_checksums(folder):
    bilm = load_bilm(folder)
    bilm.drop_softmax()
    bilm.save(folder)
    assert not (folder / "softmax.safetensors").exists()
    assert load_bilm(folder).softmax is None


def test_folders_of_older_releases_are_loaded(folder):
    expected = load_bilm(folder).embed(SENTENCES)
    drop_checksums(folder)
    for one, two in zip(load_bilm(folder).embed(SENTENCES), expected):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_models_have_checksums(name):
    checksums = load_json(find_bundled(name) / "config.json")["checksums"]
    assert set(checksums) == {"config.json", "weights.safetensors"}


@pytest.mark.parametrize("part", ["weights", "config", "vocab", "lexicon"])
def test_changed_parts_of_a_pipeline_are_refused(part, folder):
    parts = native_parts(load_data(folder))
    assert load_native_parts(parts).config == load_data(folder).config
    if part == "weights":
        damaged = bytearray(parts["weights"])
        damaged[-5] ^= 1
        parts["weights"] = bytes(damaged)
    elif part == "config":
        parts["config"] = {**parts["config"], "training": {}}
    elif part == "vocab":
        parts["vocab"] = parts["vocab"][::-1]
    else:
        words = parts["lexicon"]["words"]
        first, second, *_ = words
        swapped = {**words, first: words[second], second: words[first]}
        parts["lexicon"] = {**parts["lexicon"], "words": swapped}
    with pytest.raises(SourceError, match="checksum"):
        load_native_parts(parts)


# Values that are not finite


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_weights_that_are_not_finite_are_refused(value, dtype, tmp_path):
    make_bilm("bytes-full").save(tmp_path, dtype=dtype)
    drop_checksums(tmp_path)
    path = tmp_path / "weights.safetensors"
    arrays = dict(load_file(path))
    name = "encoder.cnn.embedding"  # the largest matrix
    name += ".scales" if dtype == "int8" else ""
    arrays[name] = arrays[name].copy()
    arrays[name][0, 2] = value
    save_file(arrays, path)
    file, sentence = refusal(tmp_path)
    assert file == str(path)
    assert "finite" in sentence


def test_hdf5_weights_that_are_not_finite_are_refused(tmp_path):
    options, arrays = small_model()
    arrays["CNN/b_cnn_1"][0] = np.nan
    file, sentence = refusal(write_pair(tmp_path, options, arrays))
    assert file == str(tmp_path / "weights.hdf5")
    assert "nan" in sentence and "finite" in sentence


def test_large_weights_are_finite(tmp_path):
    options, arrays = small_model()
    arrays["CNN/b_cnn_1"][0] = 3e38
    data = load_data(write_pair(tmp_path, options, arrays))
    assert data.arrays["encoder.cnn.biases.1"][0] == np.float32(3e38)
