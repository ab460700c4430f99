"""Models of ELMoForManyLangs: vectors, conversion and settings."""

import shutil

import numpy as np
import pytest
import torch
from helpers.manylangs_models import (
    EMBEDDER,
    ENCODER,
    SETTINGS,
    make_settings,
    original_lstm_vectors,
    original_vectors,
    write_json,
    write_model,
)

from spacy_elmo.bilm import SourceError, load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm

SENTENCES = [
    ["a", "cat", "sat", "on", "a", "cat"],
    ["나는", "학교에", "간다", "다나카"],
    [],
    # At the limit or longer: of 12 characters, two are marks.
    ["abcdefghijklmnop", "abcdefghij", "학" * 30, "c" * 11],
    ["XYZ", "caXt", "Ünk", "🙂", "\u3000", "나\u3000는", ""],  # not in the lists
]
LOOK_ALIKES = [["<bos>", "cat", "<eos>", "<pad>", "<oov>", "<bow>", "<S>", "<UNK>"]]

CNN_MODELS = {
    "chars-relu-no-highway-1-layer": {"token__n_highway": 0, "lstm__n_layers": 1},
    "chars-tanh-1-highway-2-layers": {"token__activation": "tanh"},
    "chars-relu-2-highways-3-layers": {"token__n_highway": 2, "lstm__n_layers": 3},
    "chars-tanh-2-highways": {"token__activation": "tanh", "token__n_highway": 2},
    "words-relu-1-highway": {"token__word_dim": 5},
    "words-tanh-3-layers": {
        "token__word_dim": 3,
        "token__activation": "tanh",
        "lstm__n_layers": 3,
    },
    "tight-clips": {"lstm__cell_clip": 0.4, "lstm__proj_clip": 0.3},
    "no-clips": {"lstm__cell_clip": 0, "lstm__proj_clip": None},
    "one-wide-filter": {"token__filters": [[7, 8]]},
    "filters-as-wide-as-a-word": {"token__filters": [[12, 3], [1, 2]]},
}
LSTM_MODELS = {
    "lstm-chars": {"token__name": "lstm"},
    "lstm-chars-1-layer": {"token__name": "lstm", "lstm__n_layers": 1},
    "lstm-chars-words": {"token__name": "lstm", "token__word_dim": 5},
    "lstm-chars-words-3-layers": {
        "token__name": "lstm",
        "token__word_dim": 2,
        "lstm__n_layers": 3,
    },
}
WORD_MODELS = {
    f"words-only-{name}": {
        "token__name": name,
        "token__char_dim": 0,
        "token__word_dim": 5,
    }
    for name in ("cnn", "lstm")
}
MODELS = {**CNN_MODELS, **LSTM_MODELS, **WORD_MODELS}


def assert_same(found, expected, atol=0.0):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


@pytest.fixture
def folder(tmp_path):
    """Write a model with all its files."""
    return write_model(tmp_path / "model", token__word_dim=5)


# Vectors of the original program


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", CNN_MODELS)
def test_every_layer_is_that_of_the_original_program(name, seed, tmp_path):
    write_model(tmp_path, seed=seed, **CNN_MODELS[name])
    expected = original_vectors(tmp_path, SENTENCES)
    assert all(np.std(layer) > 0.05 for layer in expected[0])  # not close to zero
    assert_same(load_bilm(tmp_path).embed(SENTENCES), expected, atol=1e-5)


def test_clips_are_hit(tmp_path):
    """Otherwise the comparisons above would not test clipping."""
    write_model(tmp_path, **CNN_MODELS["tight-clips"])
    first_layer = original_vectors(tmp_path, SENTENCES)[0][1]
    assert np.abs(first_layer).max() == np.float32(0.3)


@pytest.mark.parametrize("name", LSTM_MODELS)
def test_lstm_over_characters_gives_the_vectors_of_the_original_program(name, tmp_path):
    write_model(tmp_path, **LSTM_MODELS[name])
    expected = [original_lstm_vectors(tmp_path, sentence) for sentence in SENTENCES]
    assert all(np.std(layer) > 0.05 for layer in expected[0])
    assert_same(load_bilm(tmp_path).embed(SENTENCES), expected, atol=1e-5)


@pytest.mark.parametrize("name", WORD_MODELS)
def test_words_alone_have_the_vectors_of_the_original_program(name, tmp_path):
    write_model(tmp_path, **WORD_MODELS[name])
    sentences = SENTENCES[:3] + SENTENCES[4:]
    expected = original_vectors(tmp_path, sentences)
    assert_same(load_bilm(tmp_path).embed(sentences), expected, atol=1e-5)


@pytest.mark.parametrize("name", WORD_MODELS)
def test_long_words_alone_are_cut_where_the_original_cuts(name, tmp_path):
    write_model(tmp_path, **WORD_MODELS[name])
    sentences = [["abcdefghijklmnop", "cat"]]
    expected = original_vectors(tmp_path, sentences)
    assert_same(load_bilm(tmp_path).embed(sentences), expected, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["chars-tanh-1-highway-2-layers", "words-relu-1-highway", *WORD_MODELS]
)
def test_words_that_look_like_symbols_have_the_vectors_of_the_original_program(
    name, tmp_path
):
    write_model(tmp_path, **MODELS[name])
    expected = original_vectors(tmp_path, LOOK_ALIKES)
    assert_same(load_bilm(tmp_path).embed(LOOK_ALIKES), expected, atol=1e-5)


# Conversion


@pytest.mark.parametrize("name", MODELS)
def test_native_folder_gives_the_same_vectors(name, tmp_path):
    bilm = load_bilm(write_model(tmp_path / "source", **MODELS[name]))
    bilm.save(tmp_path / "native")
    loaded = load_bilm(tmp_path / "native")
    assert_same(loaded.embed(SENTENCES), bilm.embed(SENTENCES))
    assert loaded.config == bilm.config
    assert loaded.lexicon == bilm.lexicon
    assert not list((tmp_path / "native").glob("*.pkl"))


@pytest.mark.parametrize("name", ["words-relu-1-highway", "lstm-chars", *WORD_MODELS])
def test_saving_as_hdf5_is_refused(name, tmp_path):
    bilm = load_bilm(write_model(tmp_path / "source", **MODELS[name]))
    with pytest.raises(SourceError) as caught:
        save_bilm(bilm, tmp_path / "out", "hdf5")
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "out") in message
    assert f"'{bilm.config.encoder.type}'" in message
    assert "'bytes'" in message
    assert not (tmp_path / "out").exists()


def test_rows_without_a_symbol_are_ignored(folder, tmp_path):
    expected = load_bilm(folder).embed(SENTENCES)
    state = torch.load(folder / EMBEDDER)
    for name in ("char_emb_layer", "word_emb_layer"):
        table = state[f"{name}.embedding.weight"]
        rows = torch.full((3, table.shape[1]), 9.0)
        state[f"{name}.embedding.weight"] = torch.cat([table, rows])
    torch.save(state, folder / EMBEDDER)
    bilm = load_bilm(folder)
    assert_same(bilm.embed(SENTENCES), expected)
    bilm.save(tmp_path / "native")
    assert_same(load_bilm(tmp_path / "native").embed(SENTENCES), expected)


def test_files_of_old_torch_are_loaded(folder):
    """Published models were saved before torch wrote zip files."""
    expected = load_bilm(folder).embed(SENTENCES)
    for name in (EMBEDDER, ENCODER):
        state = torch.load(folder / name)
        torch.save(state, folder / name, _use_new_zipfile_serialization=False)
    assert_same(load_bilm(folder).embed(SENTENCES), expected)


# Finding the settings

UNUSUAL = {"token__activation": "tanh", "lstm__cell_clip": 0.5, "lstm__proj_clip": 0.4}


@pytest.mark.parametrize(
    ("config_path", "there"),
    [
        ("some/dir/mine.json", "some/dir/mine.json"),
        ("mine.json", "mine.json"),
        ("/users/someone/configs/mine.json", "mine.json"),
        ("../../configs/mine.json", "mine.json"),
        ("C:\\models\\mine.json", "mine.json"),
    ],
)
def test_settings_are_found_in_the_folder(config_path, there, tmp_path):
    write_model(tmp_path)
    (tmp_path / SETTINGS).unlink()
    write_json(tmp_path / "config.json", {"config_path": config_path})
    write_json(tmp_path / there, make_settings(**UNUSUAL))
    config = load_bilm(tmp_path).config
    assert config.encoder.activation == "tanh"
    assert config.encoder.max_chars == 12
    assert (config.lstm.cell_clip, config.lstm.proj_clip) == (0.5, 0.4)


@pytest.mark.parametrize("relative", [True, False])
def test_settings_outside_of_the_folder_are_not_read(relative, tmp_path):
    write_model(tmp_path / "model")
    elsewhere = tmp_path / "elsewhere" / "mine.json"
    write_json(elsewhere, make_settings(**UNUSUAL))
    write_json(tmp_path / "model" / "mine.json", make_settings())
    name = "../elsewhere/mine.json" if relative else str(elsewhere)
    write_json(tmp_path / "model" / "config.json", {"config_path": name})
    assert load_bilm(tmp_path / "model").config.lstm.cell_clip == 3
    (tmp_path / "model" / "mine.json").unlink()
    with pytest.warns(UserWarning, match="is not here"):
        assert load_bilm(tmp_path / "model").config.lstm.cell_clip == 3


def test_a_name_that_no_file_can_have_is_not_found(tmp_path):
    write_model(tmp_path)
    write_json(tmp_path / "config.json", {"config_path": "1" * 5000})
    with pytest.warns(UserWarning, match="is not here"):
        assert load_bilm(tmp_path).config.lstm.cell_clip == 3


def test_missing_settings_are_those_of_published_models(tmp_path):
    published = {"token__max_characters_per_token": 50, "token__word_dim": 5}
    write_model(tmp_path / "whole", **published)
    shutil.copytree(tmp_path / "whole", tmp_path / "without")
    (tmp_path / "without" / SETTINGS).unlink()
    with pytest.warns(UserWarning) as caught:
        bilm = load_bilm(tmp_path / "without")
    message = str(caught[0].message)
    assert str(tmp_path / "without" / "config.json") in message
    assert SETTINGS in message
    assert bilm.config.encoder.activation == "relu"
    assert bilm.config.encoder.max_chars == 50
    assert (bilm.config.lstm.cell_clip, bilm.config.lstm.proj_clip) == (3, 3)
    expected = load_bilm(tmp_path / "whole").embed(SENTENCES)
    assert_same(bilm.embed(SENTENCES), expected)
