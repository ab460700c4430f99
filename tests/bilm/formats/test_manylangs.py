"""Models of ELMoForManyLangs: vectors as by that program, refusals, conversion."""

import io
import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from helpers.manylangs_models import (
    EMBEDDER,
    ENCODER,
    SETTINGS,
    embedder_shapes,
    encoder_shapes,
    make_settings,
    original_lstm_vectors,
    original_vectors,
    write_json,
    write_model,
)
from helpers.models import refusal

from spacy_elmo.bilm import SourceError, load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm

SENTENCES = [
    ["a", "cat", "sat", "on", "a", "cat"],
    ["나는", "학교에", "간다", "다나카"],
    [],
    ["abcdefghijklmnop", "abcdefghij", "학" * 30, "c" * 11],  # longer than 12 - 2
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


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A model with all files."""
    return write_model(tmp_path_factory.mktemp("pristine"), token__word_dim=5)


@pytest.fixture
def folder(pristine, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(pristine, tmp_path / "copy")


# Vectors as by the original program


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", CNN_MODELS)
def test_every_layer_is_the_originals(name, seed, tmp_path):
    write_model(tmp_path, seed=seed, **CNN_MODELS[name])
    expected = original_vectors(tmp_path, SENTENCES)
    assert all(np.std(layer) > 0.05 for layer in expected[0])  # lively
    assert_same(load_bilm(tmp_path).embed(SENTENCES), expected, atol=1e-5)


def test_clips_are_hit(tmp_path):
    """Else the comparisons above would say nothing of them."""
    write_model(tmp_path, **CNN_MODELS["tight-clips"])
    first_layer = original_vectors(tmp_path, SENTENCES)[0][1]
    assert np.abs(first_layer).max() == np.float32(0.3)


@pytest.mark.parametrize("name", LSTM_MODELS)
def test_lstm_over_characters_is_the_originals_sentence_by_sentence(name, tmp_path):
    write_model(tmp_path, **LSTM_MODELS[name])
    expected = [original_lstm_vectors(tmp_path, sentence) for sentence in SENTENCES]
    assert all(np.std(layer) > 0.05 for layer in expected[0])
    assert_same(load_bilm(tmp_path).embed(SENTENCES), expected, atol=1e-5)


@pytest.mark.parametrize("name", WORD_MODELS)
def test_words_alone_are_the_originals(name, tmp_path):
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
def test_words_that_look_like_symbols_are_the_originals(name, tmp_path):
    write_model(tmp_path, **MODELS[name])
    expected = original_vectors(tmp_path, LOOK_ALIKES)
    assert_same(load_bilm(tmp_path).embed(LOOK_ALIKES), expected, atol=1e-5)


# Vectors by themselves


@pytest.mark.parametrize("name", MODELS)
def test_native_form_gives_the_same_bits(name, tmp_path):
    bilm = load_bilm(write_model(tmp_path / "source", **MODELS[name]))
    bilm.save(tmp_path / "native")
    loaded = load_bilm(tmp_path / "native")
    assert_same(loaded.embed(SENTENCES), bilm.embed(SENTENCES))
    assert loaded.config == bilm.config
    assert loaded.lexicon == bilm.lexicon
    assert not list((tmp_path / "native").glob("*.pkl"))


@pytest.mark.parametrize("name", ["words-relu-1-highway", "lstm-chars", *WORD_MODELS])
def test_no_hdf5_form(name, tmp_path):
    bilm = load_bilm(write_model(tmp_path / "source", **MODELS[name]))
    with pytest.raises(SourceError) as caught:
        save_bilm(bilm, tmp_path / "out", "hdf5")
    message = str(caught.value)
    assert "\n" not in message
    assert str(tmp_path / "out") in message
    assert f"'{bilm.config.encoder.type}'" in message
    assert "'bytes'" in message
    assert not (tmp_path / "out").exists()


def test_rows_that_no_symbol_names_are_passed_over(folder, tmp_path):
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


def test_files_of_old_torch_are_read(folder):
    """Published models were saved before torch wrote zip files."""
    expected = load_bilm(folder).embed(SENTENCES)
    for name in (EMBEDDER, ENCODER):
        state = torch.load(folder / name)
        torch.save(state, folder / name, _use_new_zipfile_serialization=False)
    assert_same(load_bilm(folder).embed(SENTENCES), expected)


# Where settings are found

TELLING = {"token__activation": "tanh", "lstm__cell_clip": 0.5, "lstm__proj_clip": 0.4}


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
    write_json(tmp_path / there, make_settings(**TELLING))
    config = load_bilm(tmp_path).config
    assert config.encoder.activation == "tanh"
    assert config.encoder.max_chars == 12
    assert (config.lstm.cell_clip, config.lstm.proj_clip) == (0.5, 0.4)


def test_settings_are_found_by_absolute_path(tmp_path):
    write_model(tmp_path / "model")
    elsewhere = tmp_path / "elsewhere" / "mine.json"
    write_json(elsewhere, make_settings(**TELLING))
    write_json(tmp_path / "model" / "mine.json", make_settings())  # comes second
    write_json(tmp_path / "model" / "config.json", {"config_path": str(elsewhere)})
    assert load_bilm(tmp_path / "model").config.lstm.cell_clip == 0.5


def test_settings_that_are_nowhere_are_the_published_ones(tmp_path):
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


@pytest.mark.parametrize("name", ["lstm", "LSTM", "gru"])
def test_encoder_of_another_name_is_refused(name, folder):
    write_json(folder / SETTINGS, make_settings(lstm__name=name))
    file, sentence = refusal(folder)
    assert file == str(folder / SETTINGS)
    assert f"'{name}'" in sentence
    assert "'elmo'" in sentence


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lstm__name": 3}, "name"),
        ({"lstm__cell_clip": "3"}, "cell_clip"),
        ({"lstm__proj_clip": -1}, "proj_clip"),
        ({"token__activation": "sigmoid"}, "activation"),
        ({"token__max_characters_per_token": "50"}, "max_chars"),
        ({"token__max_characters_per_token": 2}, "max_chars"),
    ],
)
def test_wrong_setting_is_named(changes, said, folder):
    write_json(folder / SETTINGS, make_settings(**changes))
    file, sentence = refusal(folder)
    assert file == str(folder / SETTINGS)
    assert said in sentence


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("encoder", "cell_clip"),
        ("encoder", "proj_clip"),
        ("token_embedder", "activation"),
        ("token_embedder", "max_characters_per_token"),
    ],
)
def test_missing_setting_is_named(section, key, folder):
    settings = make_settings()
    del settings[section][key]
    write_json(folder / SETTINGS, settings)
    file, sentence = refusal(folder)
    assert file == str(folder / SETTINGS)
    assert key in sentence


@pytest.mark.parametrize("name", ["config.json", SETTINGS])
@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"3", b"\xff"])
def test_json_of_another_kind_is_refused(name, content, folder):
    (folder / name).write_bytes(content)
    assert refusal(folder)[0] == str(folder / name)


def test_missing_config_is_named(folder):
    (folder / "config.json").unlink()
    assert refusal(folder)[0] == str(folder / "config.json")


# Pickles


class MakesFolder:
    """Unpickled, it makes a folder: code that must not run."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def torch_bytes(value, **kwargs):
    buffer = io.BytesIO()
    torch.save(value, buffer, **kwargs)
    return buffer.getvalue()


def unzipped_bytes(value):
    return torch_bytes(value, _use_new_zipfile_serialization=False)


def load_anything(content):
    return torch.load(io.BytesIO(content), weights_only=False)


# How to write a trap, and what would spring it.
DANGEROUS = {
    "pickle": (pickle.dumps, pickle.loads),
    "old-pickle": (lambda trap: pickle.dumps(trap, protocol=0), pickle.loads),
    "torch": (torch_bytes, load_anything),
    "old-torch": (unzipped_bytes, load_anything),
    "among-tensors": (
        lambda t: torch_bytes({"w": torch.ones(2), "t": t}),
        load_anything,
    ),
}


@pytest.mark.parametrize("name", [ENCODER, EMBEDDER])
@pytest.mark.parametrize("kind", DANGEROUS)
def test_code_in_a_pickle_does_not_run(kind, name, folder, tmp_path):
    write, spring = DANGEROUS[kind]
    trap = tmp_path / "sprung"
    content = write(MakesFolder(trap))
    (folder / name).write_bytes(content)
    file, sentence = refusal(folder)
    assert not trap.exists()
    assert file == str(folder / name)
    assert "expected a torch state dict" in sentence
    spring(content)
    assert trap.exists()  # so it was a trap


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([torch.ones(2)], "list"),
        (torch.ones(2), "Tensor"),
        ({"forward_layer_0.state_projection.weight": 3}, "dict"),
        ("weights", "str"),
        (None, "NoneType"),
    ],
)
@pytest.mark.parametrize("name", [ENCODER, EMBEDDER])
def test_other_values_than_state_dicts_are_refused(name, value, found, folder):
    torch.save(value, folder / name)
    file, sentence = refusal(folder)
    assert file == str(folder / name)
    assert f"found {found}" in sentence
    assert "expected a torch state dict" in sentence


@pytest.mark.parametrize("name", [ENCODER, EMBEDDER])
def test_missing_state_dict_is_named(name, folder):
    (folder / name).unlink()
    assert refusal(folder)[0] == str(folder / name)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])
def test_state_dict_cut_anywhere_is_refused(zipped, folder):
    state = torch.load(folder / ENCODER)
    whole = torch_bytes(state, _use_new_zipfile_serialization=zipped)
    failures = []
    for length in {*range(40), *range(0, len(whole), len(whole) // 60)}:
        (folder / ENCODER).write_bytes(whole[:length])
        try:
            assert refusal(folder)[0] == str(folder / ENCODER)
        except Exception as error:
            failures.append(f"{length} bytes: {error!r}")
    assert not failures, failures[:3]


def test_text_named_pkl_is_refused(folder):
    (folder / ENCODER).write_text("version https://git-lfs.github.com/spec/v1\n")
    assert refusal(folder)[0] == str(folder / ENCODER)


# Wrong arrays


SMALL = make_settings(token__word_dim=5)  # of the folder to spoil
ARRAYS = [
    *((EMBEDDER, key) for key in embedder_shapes(SMALL["token_embedder"], 6)),
    *((ENCODER, key) for key in encoder_shapes(SMALL["encoder"])),
]


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_missing_array_is_refused(name, key, folder):
    state = torch.load(folder / name)
    del state[key]
    torch.save(state, folder / name)
    file, sentence = refusal(folder)
    assert file == str(folder / name)
    assert "expected" in sentence


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_array_of_another_shape_is_refused(name, key, folder):
    state = torch.load(folder / name)
    array = state[key]
    for wrong in (array[..., None], array.reshape(-1)[:-1], torch.tensor(1.0)):
        torch.save({**state, key: wrong}, folder / name)
        file, sentence = refusal(folder)
        assert file == str(folder / name)
        assert "expected" in sentence


def test_neither_characters_nor_words_is_refused(folder):
    state = torch.load(folder / EMBEDDER)
    kept = {name: t for name, t in state.items() if "emb_layer" not in name}
    torch.save(kept, folder / EMBEDDER)
    file, sentence = refusal(folder)
    assert file == str(folder / EMBEDDER)
    assert "expected a table of characters or of words" in sentence


# Wrong lists of symbols

LISTS = pytest.mark.parametrize("name", ["char.dic", "word.dic"])


@LISTS
def test_missing_list_is_named(name, folder):
    (folder / name).unlink()
    assert refusal(folder)[0] == str(folder / name)


@LISTS
@pytest.mark.parametrize(
    "line", ["x", "x 5", "x\ty", "x\t5\t6", "x\t-5", "x\t", "\t5.5"]
)
def test_malformed_line_is_quoted(name, line, folder):
    lines = (folder / name).read_text(encoding="utf-8").split("\n")
    lines[2] = line
    (folder / name).write_bytes("\n".join(lines).encode())
    file, sentence = refusal(folder)
    assert file == str(folder / name)
    assert f"line 3 is {line!r}" in sentence
    assert "expected a symbol, a tab, a number" in sentence


@LISTS
def test_list_that_is_not_utf8_is_refused(name, folder):
    (folder / name).write_bytes("é\t1\n".encode("latin-1"))
    file, sentence = refusal(folder)
    assert file == str(folder / name)
    assert "UTF-8" in sentence


@LISTS
def test_more_symbols_than_rows_are_refused(name, folder):
    with open(folder / name, "ab") as file:
        file.write(b"more\t99\n")
    path, sentence = refusal(folder)
    assert path == str(folder / name)
    assert "100" in sentence


@pytest.mark.parametrize(
    ("name", "symbol"),
    [("char.dic", "<bow>"), ("char.dic", "<bos>"), ("word.dic", "<oov>")],
)
def test_missing_symbol_is_named_with_its_file(name, symbol, folder):
    text = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_bytes(text.replace(symbol, "<other>").encode())
    file, sentence = refusal(folder)
    assert symbol in sentence
    assert file == str(folder / name)
