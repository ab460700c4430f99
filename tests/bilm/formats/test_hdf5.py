"""options.json with weights.hdf5: import, export, refusals."""

import json
import shutil

import h5py
import numpy as np
import pytest
from helpers.models import refusal
from helpers.reference import (
    ReferenceBiLM,
    count_filters,
    random_arrays,
    random_options,
)

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
    SoftmaxConfig,
    SourceError,
    load_bilm,
)
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.bilm.word_vectors import bilm_from_word_vectors

SENTENCES = [["나는", "학교에", "b" * 60], ["A"], [], ["two", "words"]]
VOCAB = ["<S>", "</S>", "<UNK>", "\u2028", "a b", "\u3000", "\x85", "나는", "the"]
N_WORDS = len(VOCAB)
# What the original trainer writes beside the sizes.
TRAINER_OPTIONS = {
    "bidirectional": True,
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "n_tokens_vocab": 9,
    "unroll_steps": 20,
    "author": {"name": "Ünal", "tags": ["한국어", None]},
}
TABLE_SIZES = {"lstm": {"dim": 4, "projection_dim": 3, "n_layers": 2}}
TABLE_SIZES["char_cnn"] = {"n_highway": 1, "filters": [[1, 2], [3, 3]]}


def write_pair(folder, options, arrays, *, prefix="", vocab=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{prefix}options.json").write_text(json.dumps(options))
    with h5py.File(folder / f"{prefix}weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    if vocab is not None:
        text = "".join(word + "\n" for word in vocab)
        (folder / "vocab.txt").write_bytes(text.encode())
    return folder


def read_arrays(path):
    arrays = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == np.dtype("<f4"), name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def random_model(seed, *, spare_projection=True):
    """Options and arrays, over the seeds with all that files differ in."""
    rng = np.random.default_rng(seed)
    options = {**TRAINER_OPTIONS, **random_options(rng)}
    lstm = options["lstm"]
    optional = lstm["dim"] == lstm["projection_dim"] and rng.random() < 0.5
    n_words = N_WORDS if rng.random() < 0.5 else None
    arrays = random_arrays(options, rng, lstm_projection=not optional, n_words=n_words)
    if rng.random() < 0.5:
        arrays["char_embed"] = with_first_row(arrays["char_embed"])
    n, proj = count_filters(options), lstm["projection_dim"]
    if spare_projection and n == proj and seed % 3:  # that no size asks for
        arrays["CNN_proj/W_proj"] = rng.normal(size=(n, n)).astype(np.float32)
        arrays["CNN_proj/b_proj"] = rng.normal(size=n).astype(np.float32)
    return options, arrays


def with_first_row(table):
    """A table of 262 rows: -0.0 in front, to see whether it is copied or made."""
    return np.concatenate([np.full_like(table[:1], -0.0), table])


def small_model(n_words=N_WORDS):
    rng = np.random.default_rng(0)
    options = random_options(rng, **TABLE_SIZES)
    return options, random_arrays(options, rng, n_words=n_words)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """A pair with a softmax and its words."""
    path = tmp_path_factory.mktemp("pristine")
    return write_pair(path, *small_model(), vocab=VOCAB)


@pytest.fixture
def folder(pristine, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(pristine, tmp_path / "copy")


def change_options(folder, where, value):
    path = folder / "options.json"
    options = json.loads(path.read_text())
    *sections, key = where.split(".")
    owner = options
    for section in sections:
        owner = owner[section]
    owner[key] = value
    path.write_text(json.dumps(options))


# Import and export


@pytest.mark.parametrize("seed", range(16))
def test_export_gives_back_every_bit(seed, tmp_path):
    options, arrays = random_model(seed)
    vocab = VOCAB if "softmax/W" in arrays and seed % 2 else None
    source = write_pair(tmp_path / "source", options, arrays, vocab=vocab)
    bilm = load_bilm(source)
    save_bilm(bilm, tmp_path / "native")
    save_bilm(bilm, tmp_path / "direct", "hdf5")
    save_bilm(load_bilm(tmp_path / "native"), tmp_path / "roundabout", "hdf5")
    for folder in (tmp_path / "direct", tmp_path / "roundabout"):
        assert_same_bits(read_arrays(folder / "weights.hdf5"), arrays)
        assert json.loads((folder / "options.json").read_text()) == options
        names = {"weights.hdf5", "options.json"} | ({"vocab.txt"} if vocab else set())
        assert {path.name for path in folder.iterdir()} == names
        if vocab:
            expected = (source / "vocab.txt").read_bytes()
            assert (folder / "vocab.txt").read_bytes() == expected
        assert load_bilm(folder).vocab == vocab


@pytest.mark.parametrize("seed", range(6))
def test_imported_model_computes_what_its_arrays_say(seed, tmp_path):
    options, arrays = random_model(seed, spare_projection=False)
    vectors = load_bilm(write_pair(tmp_path, options, arrays)).embed(SENTENCES)
    expected, _ = ReferenceBiLM(options, arrays).embed(SENTENCES)
    for found, wanted in zip(vectors, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_characters", [261, 262])
@pytest.mark.parametrize("n_rows", [261, 262])
def test_both_counts_of_characters_work_with_both_tables(
    n_characters, n_rows, tmp_path
):
    options, arrays = small_model()
    expected = load_bilm(write_pair(tmp_path / "a", options, arrays)).embed(SENTENCES)
    options["char_cnn"]["n_characters"] = n_characters
    if n_rows == 262:
        arrays["char_embed"] = with_first_row(arrays["char_embed"])
    bilm = load_bilm(write_pair(tmp_path / "b", options, arrays))
    for found, wanted in zip(bilm.embed(SENTENCES), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    save_bilm(bilm, tmp_path / "c", "hdf5")
    assert_same_bits(read_arrays(tmp_path / "c" / "weights.hdf5"), arrays)
    exported = json.loads((tmp_path / "c" / "options.json").read_text())
    assert exported["char_cnn"]["n_characters"] == n_characters


def test_other_arrays_in_a_file_are_passed_over(tmp_path):
    options, arrays = small_model()
    more = {
        **arrays,
        "global_step": np.array(7),
        "CNN/W_cnn_9": np.zeros(3),
        "notes/author": "a text",
    }
    bilm = load_bilm(write_pair(tmp_path / "source", options, more))
    save_bilm(bilm, tmp_path / "out", "hdf5")
    assert_same_bits(read_arrays(tmp_path / "out" / "weights.hdf5"), arrays)


@pytest.mark.parametrize("section", ["lstm", "char_cnn"])
def test_other_options_of_a_section_are_written_back(section, tmp_path):
    options, arrays = small_model()
    options[section]["comment"] = "any"
    bilm = load_bilm(write_pair(tmp_path / "source", options, arrays))
    save_bilm(bilm, tmp_path / "out", "hdf5")
    assert json.loads((tmp_path / "out" / "options.json").read_text()) == options


def test_options_may_be_left_out(tmp_path):
    options, arrays = small_model()
    expected = {
        "lstm": {"cell_clip": None, "proj_clip": None, "use_skip_connections": False},
        "char_cnn": {"n_highway": 0, "activation": "relu", "n_characters": 262},
    }
    for section, values in expected.items():
        options[section].update(values)
    arrays = {name: a for name, a in arrays.items() if "CNN_high" not in name}
    full = load_bilm(write_pair(tmp_path / "full", options, arrays))
    for section, values in expected.items():
        for key in values:
            del options[section][key]
    assert load_bilm(write_pair(tmp_path / "short", options, arrays)).config == (
        full.config
    )


def test_softmax_without_words_stays_without(tmp_path):
    bilm = load_bilm(write_pair(tmp_path / "source", *small_model()))
    assert bilm.vocab is None
    assert bilm.softmax.n_words == N_WORDS


def test_words_without_softmax_are_not_the_models(tmp_path):
    bilm = load_bilm(write_pair(tmp_path, *small_model(n_words=None), vocab=["x"]))
    assert bilm.vocab is None
    assert bilm.softmax is None


@pytest.mark.parametrize("n_words", [N_WORDS, None])
def test_export_leaves_no_words_of_another_model(n_words, tmp_path):
    write_pair(tmp_path / "out", *small_model(), vocab=VOCAB)
    source = write_pair(tmp_path / "source", *small_model(n_words=n_words))
    save_bilm(load_bilm(source), tmp_path / "out", "hdf5")
    assert load_bilm(tmp_path / "out").vocab is None


@pytest.mark.parametrize("kind", ["sampled", "adaptive"])
def test_export_of_other_softmaxes(kind, tmp_path):
    encoder = BytesConfig(char_dim=2, filters=[[1, 3]])
    lstm = LSTMConfig(dim=4, projection_dim=3, n_layers=1)
    softmax = SoftmaxConfig(N_WORDS, type=kind, n_samples=2, cutoffs=[3])
    bilm = BiLM(BiLMConfig(encoder, lstm, softmax), vocab=VOCAB)
    if kind == "adaptive":
        with pytest.warns(UserWarning, match="adaptive"):
            save_bilm(bilm, tmp_path, "hdf5")
        assert load_bilm(tmp_path).softmax is None
        assert not (tmp_path / "vocab.txt").exists()
    else:
        save_bilm(bilm, tmp_path, "hdf5")
        found = read_arrays(tmp_path / "weights.hdf5")["softmax/W"]
        np.testing.assert_array_equal(found, bilm.softmax.weight.detach().numpy())
        assert load_bilm(tmp_path).vocab == VOCAB


def test_model_of_words_has_no_hdf5_form(tmp_path):
    bilm = bilm_from_word_vectors(["a", "b"], np.eye(2, dtype=np.float32))
    with pytest.raises(SourceError, match=r"^[^\n]*words[^\n]*bytes[^\n]*$"):
        save_bilm(bilm, tmp_path / "out", "hdf5")
    assert not (tmp_path / "out").exists()


# Names of files


@pytest.mark.parametrize("prefix", ["", "elmo_2x4096_", "_"])
@pytest.mark.parametrize("given", ["", "options.json", "weights.hdf5"])
def test_source_may_be_folder_or_either_file(prefix, given, tmp_path):
    options, arrays = small_model()
    write_pair(tmp_path, options, arrays, prefix=prefix, vocab=VOCAB)
    bilm = load_bilm(str(tmp_path / (prefix + given)) if given else tmp_path)
    found = bilm.encoder.cnn.embedding.detach().numpy()
    np.testing.assert_array_equal(found, arrays["char_embed"])
    assert bilm.vocab == VOCAB


@pytest.mark.parametrize("given", ["", "options.json", "model.hdf5"])
def test_folders_of_simple_elmo_are_read(given, tmp_path):
    options, arrays = small_model()
    write_pair(tmp_path, options, arrays)
    (tmp_path / "weights.hdf5").rename(tmp_path / "model.hdf5")
    found = load_bilm(tmp_path / given).encoder.cnn.embedding.detach().numpy()
    np.testing.assert_array_equal(found, arrays["char_embed"])


def test_export_removes_no_file_of_others(tmp_path):
    write_pair(tmp_path / "in", *small_model(n_words=None))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "vocab.txt").write_text("mine\n")
    save_bilm(load_bilm(tmp_path / "in"), tmp_path / "out", "hdf5")
    assert (tmp_path / "out" / "vocab.txt").read_text() == "mine\n"


def test_two_pairs_in_a_folder_are_not_guessed_between(tmp_path):
    options, arrays = small_model()
    for prefix, factor in (("a_", 1), ("b_", 2)):
        scaled = {name: factor * array for name, array in arrays.items()}
        write_pair(tmp_path, options, scaled, prefix=prefix)
    file, sentence = refusal(tmp_path)
    assert file == str(tmp_path)
    assert "a_weights.hdf5, b_weights.hdf5" in sentence
    assert "expected one" in sentence
    for name, factor in (("b_weights.hdf5", 2), ("a_options.json", 1)):
        found = load_bilm(tmp_path / name).encoder.cnn.embedding.detach().numpy()
        np.testing.assert_array_equal(found, factor * arrays["char_embed"])


@pytest.mark.parametrize("prefix", ["", "elmo_"])
def test_weights_without_options_are_refused(prefix, tmp_path):
    write_pair(tmp_path, *small_model(), prefix=prefix)
    (tmp_path / f"{prefix}options.json").unlink()
    for source in (tmp_path, tmp_path / f"{prefix}weights.hdf5"):
        file, sentence = refusal(source)
        assert file == str(tmp_path / f"{prefix}options.json")
        assert "no such file" in sentence


@pytest.mark.parametrize("prefix", ["", "elmo_"])
def test_options_without_weights_are_refused(prefix, tmp_path):
    write_pair(tmp_path, *small_model(), prefix=prefix)
    (tmp_path / f"{prefix}weights.hdf5").unlink()
    file, sentence = refusal(tmp_path / f"{prefix}options.json")
    assert file == str(tmp_path / f"{prefix}weights.hdf5")
    assert "no such file" in sentence
    file, sentence = refusal(tmp_path)
    assert file == str(tmp_path)
    assert f"{prefix}options.json" in sentence
    assert "weights.hdf5" in sentence


# Wrong weights


def spoil(folder, key, value):
    """Put value in the place of an array; None leaves the place empty."""
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file[key]
        if value is not None:
            file[key] = value


KEYS = sorted(small_model()[1])
SOFTMAX_MARK = "softmax/W"  # without it there is no softmax, which is no fault


@pytest.mark.parametrize("key", [key for key in KEYS if key != SOFTMAX_MARK])
def test_missing_array_is_named(key, folder):
    spoil(folder, key, None)
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert f"'{key}'" in sentence
    assert str(small_model()[1][key].shape) in sentence


@pytest.mark.parametrize("key", KEYS)
def test_array_of_another_shape_is_named(key, folder):
    array = small_model()[1][key]
    (folder / "vocab.txt").unlink()  # the length of softmax/W is the number of words
    for wrong in (
        np.concatenate([array, array[:1], array[:1]]),
        array[None],
        array.reshape(-1, 1),
        array[:0],
        np.float32(1.0),
    ):
        if key == SOFTMAX_MARK and wrong.ndim == 2:
            continue
        spoil(folder, key, wrong)
        file, sentence = refusal(folder)
        assert file == str(folder / "weights.hdf5")
        assert f"'{key}'" in sentence
        assert str(np.shape(wrong)) in sentence


@pytest.mark.parametrize("key", ["char_embed", "CNN/W_cnn_0", SOFTMAX_MARK])
def test_group_in_the_place_of_an_array_is_refused(key, folder):
    spoil(folder, key, None)
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file.create_group(key)
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert key in sentence


@pytest.mark.parametrize("key", ["char_embed", "CNN/b_cnn_0"])
def test_array_of_texts_is_refused(key, folder):
    spoil(folder, key, np.full(small_model()[1][key].shape, b"text"))
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
    assert "no whole HDF5 file" in sentence


def test_text_named_hdf5_is_refused(folder):
    (folder / "weights.hdf5").write_text("version https://git-lfs.github.com/spec/v1\n")
    file, sentence = refusal(folder)
    assert file == str(folder / "weights.hdf5")
    assert "no whole HDF5 file" in sentence


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
# Where the model's own word for a setting is said instead.
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
def test_json_that_is_no_options_is_refused(content, folder):
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
