"""Native folders that hold files of users: what is replaced, kept and refused."""

import pytest
from helpers.native_models import drop_checksums, expected_files, files_of, make_bilm

from spacy_elmo.bilm import SourceError, load_bilm, load_data
from spacy_elmo.bilm.formats.hdf5 import save_hdf5
from spacy_elmo.bilm.formats.native import save_native


def test_saving_twice_keeps_files_of_users(tmp_path):
    (tmp_path / "vocab.txt").write_text("mine\n")
    for seed in (1, 2):
        make_bilm("bytes", seed=seed).save(tmp_path)
        assert (tmp_path / "vocab.txt").read_text() == "mine\n"
    load_bilm(tmp_path)


@pytest.mark.parametrize("after", [None, "bytes"])
@pytest.mark.parametrize("name", ["vocab.txt", "softmax.safetensors", "lexicon.json"])
def test_files_of_users_that_a_model_would_use_are_refused(name, after, tmp_path):
    if after is not None:
        make_bilm(after).save(tmp_path)
    (tmp_path / name).write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(SourceError, match=f"{name}: found a file of something else"):
        make_bilm("bytes-softmax-without-words").save(tmp_path)
    assert files_of(tmp_path) == before


def test_hdf5_weights_may_be_converted_in_their_folder(tmp_path):
    folder = tmp_path / "both"
    make_bilm("bytes-full").save(tmp_path / "model")
    data = load_data(tmp_path / "model")
    save_hdf5(data, folder)
    save_native(data, folder)
    assert load_bilm(folder).predict(["a"], 0)
    other = tmp_path / "other"
    save_hdf5(data, other)
    (other / "vocab.txt").write_text("mine")
    with pytest.raises(
        SourceError, match=r"vocab\.txt: found a file of something else"
    ):
        save_native(data, other)
    assert (other / "vocab.txt").read_text() == "mine"


@pytest.mark.parametrize("config", ['{"model_type": "llama"}', "[]", "{", None])
def test_models_of_something_else_are_not_replaced(config, tmp_path):
    (tmp_path / "weights.safetensors").write_text("mine")
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    before = files_of(tmp_path)
    with pytest.raises(SourceError, match="weights.safetensors of a damaged"):
        make_bilm("bytes").save(tmp_path)
    assert files_of(tmp_path) == before


def test_models_without_checksums_are_replaced(tmp_path):
    make_bilm("chars-cnn-words").save(tmp_path)
    drop_checksums(tmp_path)  # as older releases wrote them
    make_bilm("bytes").save(tmp_path)
    assert files_of(tmp_path).keys() == expected_files("bytes")
