"""Native folders that cannot be loaded: the error is one sentence that names the
file."""

import json

import pytest
import torch
from helpers import models
from helpers.native_models import (
    VOCAB,
    drop_checksums,
    load_json,
    make_bilm,
)
from safetensors.torch import load_file, save_file


def refusal(source):
    """Return the error message for a source, including the name of the file."""
    return ": ".join(models.refusal(source))


def change_json(path, where, value):
    """Set a value in a JSON file; `where` is its key, such as "lstm.dim"."""
    data = load_json(path)
    *sections, key = where.split(".")
    owner = data
    for section in sections:
        owner = owner[section]
    owner[key] = value
    path.write_text(json.dumps(data), encoding="utf-8")


def change_tensors(path, change):
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    change(tensors)
    save_file(tensors, path)


@pytest.fixture
def folder(tmp_path):
    """Write a native folder with every kind of file."""
    make_bilm("chars-cnn-words").save(tmp_path / "model")
    drop_checksums(tmp_path / "model")  # otherwise every change would be refused
    return tmp_path / "model"


# Wrong values
WRONG_CONFIG_VALUES = [
    ("format", "word2vec"),
    ("format_version", 2),
    ("format_version", None),
    ("format_version", "1"),
    ("encoder", []),
    ("encoder.type", "pixels"),
    ("encoder.type", ["chars"]),
    ("encoder.char_dim", "3"),
    ("encoder.char_dim", 2.5),
    ("encoder.filters", 3),
    ("encoder.filters", []),
    ("encoder.filters", [[1]]),
    ("encoder.filters", [[1, "4"]]),
    ("encoder.filters", [[0, 4]]),
    ("encoder.filters", [[21, 4]]),
    ("encoder.activation", "sigmoid"),
    ("encoder.reader", "gru"),
    ("encoder.size", 3),
    ("lstm", None),
    ("lstm.dim", "7"),
    ("lstm.dim", 0),
    ("lstm.dim", True),
    ("lstm.n_layers", -1),
    ("lstm.cell_clip", -3),
    ("lstm.cell_clip", "3"),
    ("lstm.skip_connections", "yes"),
    ("lstm.forget_bias", "one"),
    ("lstm.projection", "no"),
    ("lstm.peepholes", True),
    ("softmax", []),
    ("softmax", {}),
    ("softmax", "full"),
    ("softmax.type", "hierarchical"),
    ("softmax.n_words", "15"),
    ("softmax.cutoffs", 5),
    ("softmax.cutoffs", [8, 2]),
    ("softmax.temperature", 1),
    ("training", "on some text"),
    ("training.lang", 3),
    ("training.tokenizer", ["a"]),
    ("lstm.cell_clip", float("nan")),
    ("lstm.proj_clip", float("inf")),
    ("lstm.forget_bias", float("nan")),
    ("lstm.forget_bias", float("-inf")),
    ("lstm.forget_bias", 10**400),
    ("lstm.cell_clip", 10**400),
    ("lstm.dim", 10**400),
    ("lstm.n_layers", 10**400),
    ("encoder.filters", [[1, 10**400]]),
    ("colour", "blue"),
]


@pytest.mark.parametrize(("where", "value"), WRONG_CONFIG_VALUES)
def test_wrong_value_in_config_is_named(where, value, folder):
    change_json(folder / "config.json", where, value)
    file, _, sentence = refusal(folder).partition(": ")
    assert file == str(folder / "config.json")
    assert where.split(".")[-1].replace("_", " ") in sentence.replace("_", " ")


@pytest.mark.parametrize("where", ["s\nftmax", "lstm.d\rim", "lstm.\x1b[2Jdim"])
def test_names_in_a_config_do_not_break_the_sentence(folder, where):
    change_json(folder / "config.json", where, 3)
    message = refusal(folder)
    assert message.isprintable()
    assert repr(where.split(".")[-1])[1:-1] in message


@pytest.mark.parametrize("where", ["format", "format_version", "encoder", "lstm"])
def test_missing_part_of_config_is_named(where, folder):
    config = load_json(folder / "config.json")
    del config[where]
    (folder / "config.json").write_text(json.dumps(config))
    file, _, sentence = refusal(folder).partition(": ")
    assert file == str(folder / "config.json")
    assert where.replace("_", " ") in sentence


@pytest.mark.parametrize("where", ["lstm.dim", "lstm.n_layers", "encoder.char_dim"])
def test_sizes_that_do_not_fit_the_weights_are_refused(where, folder):
    change_json(folder / "config.json", where, 11)
    assert str(folder / "weights.safetensors") in refusal(folder)


JSON_FILES = ["config.json", "lexicon.json"]
TENSOR_FILES = ["weights.safetensors", "softmax.safetensors"]


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"7", b'"text"', b"null", b"\xff\xfe{}", b'{"a": 1,}'],
)
def test_json_with_other_contents_is_refused(name, content, folder):
    (folder / name).write_bytes(content)
    assert str(folder / name) in refusal(folder)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("characters", ["a", "b"]),
        ("characters.a", "1"),
        ("characters.a", -1),
        ("words", None),
        ("words.나는", 1.5),
    ],
)
def test_wrong_value_in_lexicon_is_refused(where, value, folder):
    change_json(folder / "lexicon.json", where, value)
    assert str(folder / "lexicon.json") in refusal(folder)


@pytest.mark.parametrize("symbol", ["<bow>", "<bos>", "<oov>"])
def test_missing_symbol_is_named_with_its_file(symbol, folder):
    lexicon = load_json(folder / "lexicon.json")
    del lexicon["characters"][symbol]
    (folder / "lexicon.json").write_text(json.dumps(lexicon))
    message = refusal(folder)
    assert symbol in message
    assert str(folder / "lexicon.json") in message


@pytest.mark.parametrize("name", ["config.json", "lexicon.json"])
def test_missing_file_is_named(name, folder):
    (folder / name).unlink()
    assert str(folder / name) in refusal(folder)


def test_missing_weights_are_named(folder):
    (folder / "weights.safetensors").unlink()
    message = refusal(folder)
    assert str(folder) in message
    assert "expected weights.safetensors" in message


@pytest.mark.parametrize("name", TENSOR_FILES)
@pytest.mark.parametrize("kept", [0.0, 0.05, 0.5, 0.99])
def test_truncated_tensors_are_refused(name, kept, folder):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(kept * len(whole))])
    message = refusal(folder)
    assert str(folder / name) in message
    assert "safetensors" in message


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_text_named_safetensors_is_refused(name, folder):
    (folder / name).write_text("These are not the weights you are looking for.\n")
    assert str(folder / name) in refusal(folder)


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_every_missing_tensor_is_named(name, folder):
    path = folder / name
    whole = path.read_bytes()
    for key in list(load_file(path)):
        change_tensors(path, lambda tensors, key=key: tensors.pop(key))
        message = refusal(folder)
        assert str(path) in message
        assert key in message
        path.write_bytes(whole)


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_every_tensor_of_another_shape_is_named(name, folder):
    path = folder / name
    whole = path.read_bytes()
    for key, tensor in list(load_file(path).items()):
        wrong = torch.zeros(*tensor.shape, 2)
        change_tensors(path, lambda t, key=key, wrong=wrong: t.update({key: wrong}))
        message = refusal(folder)
        assert str(path) in message
        assert key in message
        assert str(tuple(wrong.shape)) in message  # found
        assert str(tuple(wrong.shape[:-1])) in message  # expected
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (VOCAB[:-1], ["14 words", "expected 15"]),
        ([*VOCAB, "more"], ["16 words", "expected 15"]),
        ([word.replace("<UNK>", "unk") for word in VOCAB], ["no <UNK>"]),
        ([word.replace("<S>", "s") for word in VOCAB], ["no <S>"]),
        ([word.replace("</S>", "s") for word in VOCAB], ["no </S>"]),
        ([word.replace("of", "the") for word in VOCAB], ["'the' twice"]),
    ],
)
def test_vocabulary_that_does_not_fit_is_refused(words, said, folder):
    assert len(VOCAB) == 15
    text = "".join(word + "\n" for word in words)
    (folder / "vocab.txt").write_bytes(text.encode())
    message = refusal(folder)
    for part in [str(folder / "vocab.txt"), *said]:
        assert part in message


def test_vocabulary_that_is_not_utf8_is_refused(folder):
    whole = (folder / "vocab.txt").read_bytes()
    (folder / "vocab.txt").write_bytes(whole.replace(b"the", b"\xfe\xe4"))
    message = refusal(folder)
    assert str(folder / "vocab.txt") in message
    assert "UTF-8" in message


# Not a model


def test_empty_folder_is_refused(tmp_path):
    message = refusal(tmp_path)
    assert str(tmp_path) in message
    assert "found nothing" in message
    for expected in ("weights.safetensors", "weights.hdf5", "encoder.pkl"):
        assert expected in message


def test_folder_of_other_files_is_refused_with_their_names(tmp_path):
    for name in "fedcbagh":
        (tmp_path / f"{name}.txt").touch()
    message = refusal(tmp_path)
    assert "a.txt, b.txt, c.txt" in message
    assert "h.txt" not in message  # not all names: a folder may have thousands of files


@pytest.mark.parametrize("name", ["nowhere", "no/where", "weights.hdf5", "x" * 5000])
def test_path_that_does_not_exist_is_refused(name, tmp_path):
    message = refusal(str(tmp_path / name))
    assert str(tmp_path / name) in message
    assert "no such file or folder" in message


def test_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("some notes\n")
    message = refusal(tmp_path / "notes.txt")
    assert str(tmp_path / "notes.txt") in message
    assert "another kind" in message
