"""Damage that leaves files readable: noticed by checksums and finite values."""

import zipfile

import h5py
import numpy as np
import pytest
import srsly
import torch
from helpers.hdf5_models import small_model, write_pair
from helpers.manylangs_models import EMBEDDER, ENCODER, write_model
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
from spacy_elmo.bilm.formats.sources import save_bilm

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


@pytest.mark.parametrize("name", ["vocab.txt", "lexicon.json"])
def test_a_lost_file_is_named(name, folder):
    (folder / name).unlink()
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
    folder = find_bundled(name)
    checksums = load_json(folder / "config.json")["checksums"]
    assert set(checksums) == {file.name for file in folder.iterdir()} - {"README.md"}


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


# HDF5


@pytest.fixture
def hdf5(tmp_path):
    """Write an HDF5 file of our own, and return its path."""
    save_bilm(make_bilm("bytes-full"), tmp_path / "hdf5", format="hdf5")
    return tmp_path / "hdf5" / "weights.hdf5"


def array_places(path):
    """Return where the numbers of each array are in an HDF5 file."""
    places = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            places[name] = range(
                item.id.get_offset(), item.id.get_offset() + item.nbytes
            )

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return places


@pytest.mark.slow
def test_a_flipped_bit_of_any_hdf5_array_is_refused(hdf5):
    whole = hdf5.read_bytes()
    places = array_places(hdf5)
    assert len(places) > 20
    for place in places.values():
        flip(hdf5, place[len(place) // 3])  # often the last bit of a number
        file, sentence = refusal(hdf5)
        assert file == str(hdf5)
        assert "arrays that do not match its attribute" in sentence
        hdf5.write_bytes(whole)
    load_bilm(hdf5)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_in_an_hdf5_file_changes_no_model(hdf5):
    whole, expected = hdf5.read_bytes(), load_data(hdf5)
    numbers = {i for place in array_places(hdf5).values() for i in place}
    others = [i for i in range(len(whole)) if i not in numbers and whole[i]]
    for place in others[:: len(others) // 50]:
        flip(hdf5, place)
        try:
            found = load_data(hdf5)
        except SourceError as error:
            assert hdf5.name in str(error)
        else:
            assert found.config == expected.config
            for name, array in expected.arrays.items():
                np.testing.assert_array_equal(found.arrays[name], array)
        hdf5.write_bytes(whole)


@pytest.mark.parametrize("value", [b"", b"x" * 5000, "text", 3, np.zeros(3)])
def test_hdf5_checksums_of_another_form_are_refused(value, hdf5):
    with h5py.File(hdf5, "r+") as file:
        file.attrs["spacy_elmo_checksum"] = value
    assert refusal(hdf5)[0] == str(hdf5)


def test_hdf5_files_without_checksum_are_loaded(hdf5):
    with h5py.File(hdf5, "r+") as file:
        file["softmax/b"][0] = 2.0
    assert "delete that attribute" in refusal(hdf5)[1]
    with h5py.File(hdf5, "r+") as file:
        del file.attrs["spacy_elmo_checksum"]
    assert load_data(hdf5).arrays["softmax.bias"][0] == 2.0


SAVED_WITH = [("options.json", "options"), ("vocab.txt", "vocab")]


@pytest.mark.parametrize("name", ["options.json", "vocab.txt"])
@pytest.mark.parametrize("place", [0.4, 0.7, 0.95])
def test_a_flipped_bit_beside_hdf5_weights_is_refused(name, place, hdf5):
    path = hdf5.with_name(name)
    flip(path, int(place * path.stat().st_size))
    assert refusal(hdf5)[0] == str(path)


@pytest.mark.parametrize(("name", "kind"), SAVED_WITH)
def test_a_change_by_hand_beside_hdf5_weights_is_explained(name, kind, hdf5):
    path = hdf5.with_name(name)
    text = path.read_text("utf8")
    path.write_text(
        text.replace(": 20", ": 21").replace("<UNK>\n", "<UNK>\r\n"), "utf8"
    )
    file, sentence = refusal(hdf5)
    assert file == str(path)
    assert "saved with weights.hdf5" in sentence
    with h5py.File(hdf5, "r+") as file:
        del file.attrs[f"spacy_elmo_checksum_{kind}"]
    load_data(hdf5)


def test_a_vocabulary_that_is_lost_or_new_is_refused(hdf5):
    path = hdf5.with_name("vocab.txt")
    contents = path.read_bytes()
    path.unlink()
    assert refusal(hdf5)[0] == str(path)
    save_bilm(make_bilm("bytes-softmax-without-words"), hdf5.parent, format="hdf5")
    assert load_data(hdf5).vocab is None
    path.write_bytes(contents)
    assert refusal(hdf5)[0] == str(path)


@pytest.mark.parametrize("name", ["options.json", "vocab.txt", "weights.hdf5"])
def test_files_of_two_hdf5_models_are_not_loaded_together(name, hdf5, tmp_path):
    other = make_bilm("bytes-full", seed=1)
    other.config.training["epochs"] = 3
    save_bilm(other, tmp_path / "other", format="hdf5")
    del other.config.training["epochs"]
    words = (tmp_path / "other" / "vocab.txt").read_text("utf8").split("\n")
    (tmp_path / "other" / "vocab.txt").write_text("\n".join([*words[-2::-1], ""]))
    (tmp_path / "other" / name).replace(hdf5.with_name(name))
    assert refusal(hdf5)[0] in map(str, hdf5.parent.iterdir())


# ELMoForManyLangs


@pytest.mark.parametrize("name", [EMBEDDER, ENCODER])
def test_a_flipped_bit_of_a_torch_file_is_refused(name, tmp_path):
    path = write_model(tmp_path, token__word_dim=5) / name
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        entries = [entry for entry in file.infolist() if "/data/" in entry.filename]
    assert len(entries) >= 8
    for entry in entries:
        # A header of 30 bytes, the name and padding come before the numbers.
        sizes = whole[entry.header_offset + 26 : entry.header_offset + 30]
        before = 30 + sum(np.frombuffer(sizes, "<u2").tolist())
        flip(path, entry.header_offset + before + entry.file_size // 2)
        file, sentence = refusal(tmp_path)
        assert file == str(path)
        assert entry.filename in sentence and "checksum" in sentence
        path.write_bytes(whole)
    load_data(tmp_path)


def test_torch_files_of_the_old_form_are_loaded(tmp_path):
    path = write_model(tmp_path) / ENCODER
    expected = load_data(tmp_path).arrays
    torch.save(torch.load(path), path, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(path)
    found = load_data(tmp_path).arrays
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


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
