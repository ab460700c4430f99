"""The native folder: saving and loading."""

import builtins
import codecs
import io
import os
from dataclasses import replace

import h5py
import numpy as np
import pytest
import safetensors
import torch
from helpers.native_models import (
    BYTES,
    KINDS,
    LSTM,
    SENTENCES,
    TRAINING,
    VOCAB,
    assert_same_model,
    drop_checksums,
    every_kind,
    expected_files,
    files_of,
    load_json,
    make_bilm,
)
from safetensors.torch import load_file

from spacy_elmo.bilm import BiLM, BiLMConfig, SoftmaxConfig, SourceError, load_bilm


@pytest.fixture
def folder(tmp_path):
    """Write a native folder with every kind of file."""
    make_bilm("chars-cnn-words").save(tmp_path / "model")
    return tmp_path / "model"


# Round trips


@every_kind
def test_round_trip_keeps_everything(kind, tmp_path):
    bilm = make_bilm(kind)
    bilm.save(tmp_path / "new" / "folder")
    loaded = load_bilm(tmp_path / "new" / "folder")
    assert_same_model(loaded, bilm)
    assert not loaded.training


@every_kind
def test_saving_what_was_loaded_writes_the_same_bytes(kind, tmp_path):
    make_bilm(kind).save(tmp_path / "one")
    load_bilm(str(tmp_path / "one")).save(str(tmp_path / "two"))
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


def test_saving_to_the_folder_it_was_loaded_from(tmp_path):
    bilm = make_bilm("bytes-full")
    bilm.save(tmp_path)
    loaded = load_bilm(tmp_path)
    loaded.save(tmp_path)
    assert_same_model(loaded, bilm)
    assert_same_model(load_bilm(tmp_path), bilm)


def test_words_with_carriage_returns_come_back(tmp_path):
    words = ["<S>", "</S>", "<UNK>", "a\rb", "\rc"]
    config = BiLMConfig(BYTES, LSTM, SoftmaxConfig(len(words)))
    BiLM(config, vocab=words).save(tmp_path)
    assert load_bilm(tmp_path).vocab == words


def test_a_byte_order_mark_belongs_to_no_word(tmp_path):
    words = ["<S>", "</S>", "<UNK>", "a"]
    config = BiLMConfig(BYTES, LSTM, SoftmaxConfig(len(words)))
    BiLM(config, vocab=words).save(tmp_path)
    drop_checksums(tmp_path)
    path = tmp_path / "vocab.txt"
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert load_bilm(tmp_path).vocab == words
    words = ["\ufeffa", *words]  # unless it was there before
    BiLM(replace(config, softmax=SoftmaxConfig(5)), vocab=words).save(tmp_path)
    assert load_bilm(tmp_path).vocab == words


def test_halves_of_characters_in_a_config_come_back(tmp_path):
    config = BiLMConfig(BYTES, LSTM, training={"note": "한 \ud800", "\udce9": 1})
    BiLM(config).save(tmp_path)
    assert "한" in (tmp_path / "config.json").read_text("utf-8")
    assert load_bilm(tmp_path).config == config


@pytest.mark.parametrize("word", ["a\nb", "\n", "ends\r"])
def test_a_word_with_a_line_break_is_refused_in_one_sentence(word, tmp_path):
    config = BiLMConfig(BYTES, LSTM, SoftmaxConfig(4))
    bilm = BiLM(config, vocab=["<S>", "</S>", "<UNK>", word])
    with pytest.raises(SourceError, match=r"^[^\n]*vocab\.txt[^\n]*$"):
        bilm.save(tmp_path)


SAVED_OVER = ["bytes", "bytes-softmax-without-words", "chars-cnn-words"]


@pytest.mark.parametrize("new", SAVED_OVER)
@pytest.mark.parametrize("old", SAVED_OVER)
def test_saving_over_another_model_removes_its_files(old, new, tmp_path):
    make_bilm(old, seed=1).save(tmp_path)
    bilm = make_bilm(new, seed=2)
    bilm.save(tmp_path)
    assert files_of(tmp_path).keys() == expected_files(new)
    assert_same_model(load_bilm(tmp_path), bilm)


# Files that are written


@every_kind
def test_every_file_is_json_text_or_safetensors(kind, tmp_path):
    make_bilm(kind).save(tmp_path)
    assert files_of(tmp_path).keys() == expected_files(kind)
    for path in tmp_path.iterdir():
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, "numpy") as file:
                assert list(file.keys())
        elif path.suffix == ".json":
            assert isinstance(load_json(path), dict)
        else:
            assert path.read_bytes().decode("utf-8").split("\n") == [*VOCAB, ""]


def test_softmax_has_its_own_file(tmp_path):
    make_bilm("bytes-full").save(tmp_path)
    softmax = load_file(tmp_path / "softmax.safetensors")
    assert {name: tuple(t.shape) for name, t in softmax.items()} == {
        "weight": (len(VOCAB), LSTM.projection_dim),
        "bias": (len(VOCAB),),
    }
    names = load_file(tmp_path / "weights.safetensors")
    assert not any("softmax" in name for name in names)


def test_config_has_sizes_training_and_version(folder):
    config = load_json(folder / "config.json")
    assert config["format"] == "spacy-elmo"
    assert config["format_version"] == 1
    assert config["training"] == TRAINING
    assert config["lstm"]["dim"] == 7
    assert config["lstm"]["projection_dim"] == 6
    assert config["lstm"]["n_layers"] == 2
    assert config["lstm"]["cell_clip"] == 0.8
    assert config["encoder"]["type"] == "chars"
    assert config["encoder"]["filters"] == [[1, 4], [3, 5]]
    assert config["encoder"]["word_dim"] == 4
    assert config["softmax"]["n_words"] == len(VOCAB)


@every_kind
def test_constructing_opens_no_file(kind, monkeypatch):
    make_bilm(kind)  # before `open` fails, because late imports open files
    encoder, lstm, softmax, lexicon, vocab = KINDS[kind]

    def fail(*args, **kwargs):
        raise AssertionError(f"opened {args}")

    for owner, name in [
        (builtins, "open"),
        (io, "open"),
        (os, "open"),
        (h5py, "File"),
        (torch, "load"),
        (safetensors, "safe_open"),
        (safetensors.torch, "safe_open"),
    ]:
        monkeypatch.setattr(owner, name, fail)
    config = BiLMConfig(encoder, lstm, softmax)
    vectors = BiLM(config, lexicon=lexicon, vocab=vocab).embed(SENTENCES)
    assert vectors[0].shape == (lstm.n_layers + 1, 3, 2 * lstm.projection_dim)


# Optional files


def test_the_softmax_is_optional(folder):
    expected = load_bilm(folder).embed([["a", "word"]])[0]
    for name in ("softmax.safetensors", "vocab.txt"):
        (folder / name).unlink()
    bilm = load_bilm(folder)
    assert bilm.softmax is None and bilm.vocab is None
    np.testing.assert_array_equal(bilm.embed([["a", "word"]])[0], expected)


def test_saving_keeps_files_of_users(tmp_path):
    (tmp_path / "vocab.txt").write_text("mine\n")
    make_bilm("bytes").save(tmp_path)
    assert (tmp_path / "vocab.txt").read_text() == "mine\n"


def test_vocabulary_with_windows_line_ends_is_loaded(folder):
    drop_checksums(folder)
    whole = (folder / "vocab.txt").read_bytes()
    (folder / "vocab.txt").write_bytes(whole.replace(b"\n", b"\r\n"))
    assert load_bilm(folder).vocab == VOCAB
