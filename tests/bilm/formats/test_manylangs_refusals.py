"""ELMoForManyLangs folders that cannot be loaded: the error is one sentence that names
the file."""

import codecs
import io
import os
import pickle

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
    write_json,
    write_model,
)
from helpers.models import refusal

from spacy_elmo.bilm import load_data


@pytest.fixture
def folder(tmp_path):
    """Write a model with all its files."""
    return write_model(tmp_path / "model", token__word_dim=5)


# Wrong settings


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
    """An object that makes a folder when it is unpickled."""

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


# Functions that write an object as a file, and that load it and run its code.
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
    write, load_carelessly = DANGEROUS[kind]
    trap = tmp_path / "made by the pickle"
    content = write(MakesFolder(trap))
    (folder / name).write_bytes(content)
    file, sentence = refusal(folder)
    assert not trap.exists()
    assert file == str(folder / name)
    assert "expected a torch state dict" in sentence
    load_carelessly(content)
    assert trap.exists()  # the file does run code if it is loaded carelessly


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
def test_values_other_than_state_dicts_are_refused(name, value, found, folder):
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
@pytest.mark.slow
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


SMALL = make_settings(token__word_dim=5)  # the settings of the fixture `folder`
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
def test_a_byte_order_mark_belongs_to_no_symbol(name, folder):
    lexicon = load_data(folder).lexicon
    (folder / name).write_bytes(codecs.BOM_UTF8 + (folder / name).read_bytes())
    assert load_data(folder).lexicon == lexicon


def test_tensors_that_were_trained_are_loaded(folder):
    arrays = load_data(folder).arrays
    for name in (ENCODER, EMBEDDER):
        state = torch.load(folder / name)
        learned = {key: torch.nn.Parameter(tensor) for key, tensor in state.items()}
        torch.save(learned, folder / name)
    for name, array in load_data(folder).arrays.items():
        np.testing.assert_array_equal(array, arrays[name])


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
