"""The native folder: what is written, what comes back, what is refused."""

import builtins
import io
import json
import os
import shutil

import h5py
import numpy as np
import pytest
import safetensors
import torch
from helpers import models
from safetensors.torch import load_file, save_file

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    Lexicon,
    LSTMConfig,
    SoftmaxConfig,
    SourceError,
    WordsConfig,
    load_bilm,
)

SENTENCES = [["나는", "a b", "b" * 60], [], ["\u2028"], ["a", "bad", "Ünk", "", "a"]]
ODD_WORDS = [
    "\u2028",
    "a b",
    "\u3000",
    "\x85",
    "\x1c",
    " ",
    "",
    "\ufeff",
    "'\"\\",
    "나",
]
VOCAB = ["<S>", "</S>", "<UNK>", *ODD_WORDS, "the", "of"]
TRAINING = {"corpus": "한국어 위키", "perplexity": 39.7, "steps": [1, 2], "note": None}
CHARACTERS = [
    "<bos>",
    "<eos>",
    "<oov>",
    "<pad>",
    "<bow>",
    "<eow>",
    *"abd나\u2028\u3000",
]

BYTES = BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]], n_highway=2, max_chars=20)
LSTM = LSTMConfig(dim=7, projection_dim=6, n_layers=2, cell_clip=0.8, proj_clip=0.7)
PLAIN_LSTM = LSTMConfig(
    dim=9,
    projection_dim=9,
    n_layers=1,
    cell_clip=None,
    proj_clip=None,
    skip_connections=False,
    forget_bias=0.5,
    projection=False,
)
ROWS_262 = BytesConfig(
    char_dim=2,
    filters=[[2, 9]],
    n_highway=0,
    activation="tanh",
    n_rows=262,
    n_characters=261,
    projection=True,
)
CNN = {"char_dim": 3, "filters": [[1, 4], [3, 5]], "max_chars": 20}


def numbered(symbols):
    return {symbol: row for row, symbol in enumerate(symbols)}


CHAR_LEXICON = Lexicon(characters=numbered(CHARACTERS))
FULL_LEXICON = Lexicon(numbered(CHARACTERS), numbered(["<oov>", "나는", *ODD_WORDS]))
WORD_LEXICON = Lexicon(words=numbered(VOCAB))

# encoder, LSTMs, softmax, lexicon, words of the softmax
KINDS = {
    "bytes": (BYTES, LSTM, None, None, None),
    "bytes-262-rows": (ROWS_262, PLAIN_LSTM, None, None, None),
    "bytes-softmax-without-words": (BYTES, LSTM, SoftmaxConfig(7), None, None),
    "bytes-full": (BYTES, LSTM, SoftmaxConfig(len(VOCAB)), None, VOCAB),
    "bytes-sampled": (
        BYTES,
        LSTM,
        SoftmaxConfig(len(VOCAB), type="sampled", n_samples=4),
        None,
        VOCAB,
    ),
    "bytes-adaptive": (
        BYTES,
        LSTM,
        SoftmaxConfig(len(VOCAB), type="adaptive", cutoffs=[2, 8]),
        None,
        VOCAB,
    ),
    "chars-cnn": (CharsConfig(**CNN), LSTM, None, CHAR_LEXICON, None),
    "chars-cnn-words": (
        CharsConfig(word_dim=4, activation="tanh", **CNN),
        LSTM,
        SoftmaxConfig(len(VOCAB)),
        FULL_LEXICON,
        VOCAB,
    ),
    "chars-lstm": (
        CharsConfig(reader="lstm", char_dim=3),
        LSTM,
        None,
        CHAR_LEXICON,
        None,
    ),
    "chars-lstm-words": (
        CharsConfig(reader="lstm", char_dim=3, word_dim=2),
        LSTM,
        None,
        FULL_LEXICON,
        None,
    ),
    "words": (WordsConfig(dim=4), LSTM, None, WORD_LEXICON, None),
    "words-fixed": (
        WordsConfig(dim=5, trainable=False),
        LSTM,
        SoftmaxConfig(len(VOCAB)),
        WORD_LEXICON,
        VOCAB,
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_bilm(kind, seed=0):
    """A model of that kind with lively random weights."""
    encoder, lstm, softmax, lexicon, vocab = KINDS[kind]
    config = BiLMConfig(encoder, lstm, softmax, TRAINING)
    bilm = BiLM(config, lexicon=lexicon, vocab=vocab).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return bilm


def expected_files(kind):
    _, _, softmax, lexicon, vocab = KINDS[kind]
    files = {"config.json", "weights.safetensors"}
    files |= {"softmax.safetensors"} if softmax else set()
    files |= {"vocab.txt"} if vocab else set()
    return files | ({"lexicon.json"} if lexicon else set())


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same_model(found, expected):
    """The same in all that the model is, its vectors to the last bit."""
    assert found.config == expected.config
    assert found.lexicon == expected.lexicon
    assert found.vocab == expected.vocab
    found_weights, weights = found.state_dict(), expected.state_dict()
    assert found_weights.keys() == weights.keys()
    for name, tensor in weights.items():
        assert found_weights[name].dtype == torch.float32
        assert torch.equal(found_weights[name], tensor), name
    learned = [name for name, p in expected.named_parameters() if p.requires_grad]
    assert [n for n, p in found.named_parameters() if p.requires_grad] == learned
    for one, other in zip(
        found.embed(SENTENCES), expected.embed(SENTENCES), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def refusal(source):
    """The one sentence a source is refused with."""
    return ": ".join(models.refusal(source))


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def change_json(path, where, value):
    """Set a dotted key of a JSON file."""
    data = read_json(path)
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


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A native folder with everything in it."""
    path = tmp_path_factory.mktemp("pristine")
    make_bilm("chars-cnn-words").save(path)
    return path


@pytest.fixture
def folder(pristine, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(pristine, tmp_path / "copy")


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


def test_saving_over_the_own_folder_keeps_the_model(tmp_path):
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


@pytest.mark.parametrize("word", ["a\nb", "\n", "ends\r"])
def test_a_word_that_fits_no_line_is_refused_in_one_sentence(word, tmp_path):
    config = BiLMConfig(BYTES, LSTM, SoftmaxConfig(4))
    bilm = BiLM(config, vocab=["<S>", "</S>", "<UNK>", word])
    with pytest.raises(SourceError, match=r"^[^\n]*vocab\.txt[^\n]*$"):
        bilm.save(tmp_path)


SAVED_OVER = ["bytes", "bytes-softmax-without-words", "chars-cnn-words"]


@pytest.mark.parametrize("new", SAVED_OVER)
@pytest.mark.parametrize("old", SAVED_OVER)
def test_saving_over_another_model_leaves_nothing_of_it(old, new, tmp_path):
    make_bilm(old, seed=1).save(tmp_path)
    bilm = make_bilm(new, seed=2)
    bilm.save(tmp_path)
    assert files_of(tmp_path).keys() == expected_files(new)
    assert_same_model(load_bilm(tmp_path), bilm)


# What is written


@every_kind
def test_every_file_is_json_text_or_safetensors(kind, tmp_path):
    make_bilm(kind).save(tmp_path)
    assert files_of(tmp_path).keys() == expected_files(kind)
    for path in tmp_path.iterdir():
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, "numpy") as file:
                assert list(file.keys())
        elif path.suffix == ".json":
            assert isinstance(read_json(path), dict)
        else:
            assert path.read_bytes().decode("utf-8").split("\n") == [*VOCAB, ""]


def test_softmax_is_apart_from_what_embedding_needs(tmp_path):
    make_bilm("bytes-full").save(tmp_path)
    softmax = load_file(tmp_path / "softmax.safetensors")
    assert {name: tuple(t.shape) for name, t in softmax.items()} == {
        "weight": (len(VOCAB), LSTM.projection_dim),
        "bias": (len(VOCAB),),
    }
    names = load_file(tmp_path / "weights.safetensors")
    assert not any("softmax" in name for name in names)


def test_config_tells_sizes_training_and_version(folder):
    config = read_json(folder / "config.json")
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
def test_constructing_reads_no_file(kind, monkeypatch):
    make_bilm(kind)  # what is imported late is imported now
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


# Refusals

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
    ("colour", "blue"),
]


@pytest.mark.parametrize(("where", "value"), WRONG_CONFIG_VALUES)
def test_wrong_value_in_config_is_named(where, value, folder):
    change_json(folder / "config.json", where, value)
    file, _, sentence = refusal(folder).partition(": ")
    assert file == str(folder / "config.json")
    assert where.split(".")[-1].replace("_", " ") in sentence.replace("_", " ")


@pytest.mark.parametrize("where", ["format", "format_version", "encoder", "lstm"])
def test_missing_part_of_config_is_named(where, folder):
    config = read_json(folder / "config.json")
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
def test_json_of_another_kind_is_refused(name, content, folder):
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
    lexicon = read_json(folder / "lexicon.json")
    del lexicon["characters"][symbol]
    (folder / "lexicon.json").write_text(json.dumps(lexicon))
    message = refusal(folder)
    assert symbol in message
    assert str(folder / "lexicon.json") in message


@pytest.mark.parametrize("name", ["config.json", "lexicon.json"])
def test_missing_file_is_named(name, folder):
    (folder / name).unlink()
    assert str(folder / name) in refusal(folder)


def test_the_softmax_may_be_left_out(folder):
    expected = load_bilm(folder).embed([["a", "word"]])[0]
    for name in ("softmax.safetensors", "vocab.txt"):
        (folder / name).unlink()
    bilm = load_bilm(folder)
    assert bilm.softmax is None and bilm.vocab is None
    np.testing.assert_array_equal(bilm.embed([["a", "word"]])[0], expected)


def test_saving_removes_no_file_of_others(tmp_path):
    (tmp_path / "vocab.txt").write_text("mine\n")
    make_bilm("bytes").save(tmp_path)
    assert (tmp_path / "vocab.txt").read_text() == "mine\n"


def test_missing_weights_are_asked_for(folder):
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


def test_vocabulary_with_windows_line_ends_is_read(folder):
    whole = (folder / "vocab.txt").read_bytes()
    (folder / "vocab.txt").write_bytes(whole.replace(b"\n", b"\r\n"))
    assert load_bilm(folder).vocab == VOCAB


# Sources that are none


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
    assert "h.txt" not in message  # a folder may hold thousands


@pytest.mark.parametrize("name", ["nowhere", "no/where", "weights.hdf5"])
def test_path_that_does_not_exist_is_refused(name, tmp_path):
    message = refusal(str(tmp_path / name))
    assert str(tmp_path / name) in message
    assert "no such file or folder" in message


def test_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("some notes\n")
    message = refusal(tmp_path / "notes.txt")
    assert str(tmp_path / "notes.txt") in message
    assert "another kind" in message
