"""HDF5 models that cannot be loaded: the error is one sentence that names the file."""

import json

import h5py
import numpy as np
import pytest
from helpers.hdf5_models import (
    VOCAB,
    small_model,
    write_pair,
)
from helpers.models import refusal


@pytest.fixture
def folder(tmp_path):
    """Write a model with a softmax and its vocabulary."""
    return write_pair(tmp_path / "model", *small_model(), vocab=VOCAB)


def change_options(folder, where, value):
    path = folder / "options.json"
    options = json.loads(path.read_text())
    *sections, key = where.split(".")
    owner = options
    for section in sections:
        owner = owner[section]
    owner[key] = value
    path.write_text(json.dumps(options))


# Wrong weights


def replace_array(folder, key, value):
    """Replace an array in weights.hdf5, or remove it if the value is None."""
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file[key]
        if value is not None:
            file[key] = value


KEYS = sorted(small_model()[1])
SOFTMAX = "softmax/W"  # optional: without it the model has no softmax


@pytest.mark.parametrize("key", [key for key in KEYS if key != SOFTMAX])
def test_missing_array_is_named(key, folder):
    replace_array(folder, key, None)
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert f"'{key}'" in sentence
    assert str(small_model()[1][key].shape) in sentence


@pytest.mark.parametrize("key", KEYS)
def test_array_of_another_shape_is_named(key, folder):
    array = small_model()[1][key]
    (folder / "vocab.txt").unlink()  # otherwise it would not fit a longer softmax/W
    for wrong in (
        np.concatenate([array, array[:1], array[:1]]),
        array[None],
        array.reshape(-1, 1),
        array[:0],
        np.float32(1.0),
    ):
        if key == SOFTMAX and wrong.ndim == 2:
            continue
        replace_array(folder, key, wrong)
        file, sentence = refusal(folder)
        assert file == str(folder / "weights.hdf5")
        assert f"'{key}'" in sentence
        assert str(np.shape(wrong)) in sentence


@pytest.mark.parametrize("key", ["char_embed", "CNN/W_cnn_0", SOFTMAX])
def test_group_in_the_place_of_an_array_is_refused(key, folder):
    replace_array(folder, key, None)
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file.create_group(key)
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert key in sentence


@pytest.mark.parametrize("key", ["char_embed", "CNN/b_cnn_0"])
def test_array_of_texts_is_refused(key, folder):
    replace_array(folder, key, np.full(small_model()[1][key].shape, b"text"))
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert key in sentence


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.5, 0.999])
def test_truncated_weights_are_refused(kept, folder):
    path = folder / "weights.hdf5"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    file, sentence = refusal(folder)
    assert file == str(path)
    assert "no complete HDF5 file" in sentence


def test_text_named_hdf5_is_refused(folder):
    (folder / "weights.hdf5").write_text("version https://git-lfs.github.com/spec/v1\n")
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert "no complete HDF5 file" in sentence


# Wrong options

WRONG_OPTIONS = [
    ("lstm", None),
    ("lstm", [1, 2]),
    ("lstm.dim", "64"),
    ("lstm.dim", 4.0),
    ("lstm.dim", 0),
    ("lstm.dim", None),
    ("lstm.n_layers", True),
    ("lstm.projection_dim", -1),
    ("lstm.cell_clip", "3"),
    ("lstm.cell_clip", -1),
    ("lstm.proj_clip", [3]),
    ("lstm.use_skip_connections", "no"),
    ("char_cnn", "cnn"),
    ("char_cnn.activation", "sigmoid"),
    ("char_cnn.activation", None),
    ("char_cnn.embedding", 16),
    ("char_cnn.embedding.dim", "16"),
    ("char_cnn.filters", 7),
    ("char_cnn.filters", []),
    ("char_cnn.filters", {"1": 2}),
    ("char_cnn.filters", [1, 2]),
    ("char_cnn.filters", [[1, 2], [3]]),
    ("char_cnn.filters", [[1, 2, 3]]),
    ("char_cnn.filters", [["1", 2]]),
    ("char_cnn.filters", [[0, 2]]),
    ("char_cnn.filters", [[99, 2]]),
    ("char_cnn.max_characters_per_token", "50"),
    ("char_cnn.max_characters_per_token", 2),
    ("char_cnn.n_characters", 300),
    ("char_cnn.n_highway", "1"),
    ("char_cnn.n_highway", -1),
]
# Options that have another name in our config, which the message may use instead.
OWN_NAMES = {
    "embedding.dim": "char_dim",
    "max_characters_per_token": "max_chars",
    "use_skip_connections": "skip_connections",
}


@pytest.mark.parametrize(("where", "value"), WRONG_OPTIONS)
def test_wrong_option_is_named(where, value, folder):
    change_options(folder, where, value)
    file, sentence = refusal(folder)
    assert file == str(folder / "options.json")
    key = where.removeprefix("lstm.").removeprefix("char_cnn.")
    assert key in sentence or OWN_NAMES.get(key, key) in sentence
    assert "expected" in sentence


@pytest.mark.parametrize(
    "where",
    [
        "lstm",
        "lstm.dim",
        "lstm.projection_dim",
        "lstm.n_layers",
        "char_cnn",
        "char_cnn.embedding",
        "char_cnn.embedding.dim",
        "char_cnn.filters",
        "char_cnn.max_characters_per_token",
    ],
)
def test_missing_option_is_named(where, folder):
    options = json.loads((folder / "options.json").read_text())
    *sections, key = where.split(".")
    owner = options
    for section in sections:
        owner = owner[section]
    del owner[key]
    (folder / "options.json").write_text(json.dumps(options))
    file, sentence = refusal(folder)
    assert file == str(folder / "options.json")
    assert f"no '{key}'" in sentence or f"no section '{key}'" in sentence


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"null", b"3", b'"text"', b"{'lstm': 1}", b'{"lstm":', b"\xff"],
)
def test_json_without_options_is_refused(content, folder):
    (folder / "options.json").write_bytes(content)
    file, _ = refusal(folder)
    assert file == str(folder / "options.json")


@pytest.mark.parametrize(
    ("where", "value", "array"),
    [
        ("lstm.dim", 5, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"),
        ("lstm.dim", 10**13, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"),
        ("lstm.n_layers", 3, "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0"),
        ("lstm.projection_dim", 4, "CNN_proj/W_proj"),
        ("char_cnn.embedding.dim", 1, "char_embed"),
        ("char_cnn.filters", [[1, 2], [2, 3]], "CNN/W_cnn_1"),
        ("char_cnn.filters", [[1, 2], [3, 3], [4, 1]], "CNN/W_cnn_2"),
        ("char_cnn.n_highway", 2, "CNN_high_1/W_transform"),
    ],
)
def test_options_of_another_model_are_refused(where, value, array, folder):
    change_options(folder, where, value)
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert f"'{array}'" in sentence


# Wrong words


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\n".join(VOCAB[:-1]), "found 8 words; expected 9"),
        ("\n".join([*VOCAB, "x"]), "found 10 words; expected 9"),
        ("\n".join(VOCAB).replace("<UNK>", "unk"), "no <UNK>"),
        ("", "found 0 words"),
    ],
)
def test_vocabulary_that_does_not_fit_is_refused(content, said, folder):
    (folder / "vocab.txt").write_bytes(content.encode())
    file, sentence = refusal(folder)
    assert file == str(folder / "vocab.txt")
    assert said in sentence


def test_vocabulary_that_is_not_utf8_is_refused(folder):
    (folder / "vocab.txt").write_bytes("\n".join(VOCAB).encode("utf-16"))
    file, sentence = refusal(folder)
    assert file == str(folder / "vocab.txt")
    assert "UTF-8" in sentence
