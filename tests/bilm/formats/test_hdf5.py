"""Models as options.json with weights.hdf5: loading, saving, names of files."""

import json

import numpy as np
import pytest
from helpers.hdf5_models import (
    N_WORDS,
    VOCAB,
    assert_same_bits,
    load_arrays,
    random_model,
    small_model,
    with_first_row,
    write_pair,
)
from helpers.models import refusal
from helpers.reference import ReferenceBiLM

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


# Import and export


@pytest.mark.parametrize("seed", range(16))
def test_export_gives_back_every_bit(seed, tmp_path):
    options, arrays = random_model(seed)
    vocab = VOCAB if "softmax/W" in arrays and seed % 2 else None
    source = write_pair(tmp_path / "source", options, arrays, vocab=vocab)
    bilm = load_bilm(source)
    save_bilm(bilm, tmp_path / "native")
    save_bilm(bilm, tmp_path / "direct", "hdf5")
    save_bilm(load_bilm(tmp_path / "native"), tmp_path / "by way of native", "hdf5")
    for folder in (tmp_path / "direct", tmp_path / "by way of native"):
        assert_same_bits(load_arrays(folder / "weights.hdf5"), arrays)
        assert json.loads((folder / "options.json").read_text()) == options
        names = {"weights.hdf5", "options.json"} | ({"vocab.txt"} if vocab else set())
        assert {path.name for path in folder.iterdir()} == names
        if vocab:
            expected = (source / "vocab.txt").read_bytes()
            assert (folder / "vocab.txt").read_bytes() == expected
        assert load_bilm(folder).vocab == vocab


@pytest.mark.parametrize("seed", range(6))
def test_loaded_model_agrees_with_the_reference(seed, tmp_path):
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
    assert_same_bits(load_arrays(tmp_path / "c" / "weights.hdf5"), arrays)
    exported = json.loads((tmp_path / "c" / "options.json").read_text())
    assert exported["char_cnn"]["n_characters"] == n_characters


def test_other_arrays_in_a_file_are_ignored(tmp_path):
    options, arrays = small_model()
    more = {
        **arrays,
        "global_step": np.array(7),
        "CNN/W_cnn_9": np.zeros(3),
        "notes/author": "a text",
    }
    bilm = load_bilm(write_pair(tmp_path / "source", options, more))
    save_bilm(bilm, tmp_path / "out", "hdf5")
    assert_same_bits(load_arrays(tmp_path / "out" / "weights.hdf5"), arrays)


@pytest.mark.parametrize("section", ["lstm", "char_cnn"])
def test_other_options_of_a_section_are_written_back(section, tmp_path):
    options, arrays = small_model()
    options[section]["comment"] = "any"
    bilm = load_bilm(write_pair(tmp_path / "source", options, arrays))
    save_bilm(bilm, tmp_path / "out", "hdf5")
    assert json.loads((tmp_path / "out" / "options.json").read_text()) == options


def test_optional_options_have_defaults(tmp_path):
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


def test_softmax_without_words_has_no_vocabulary(tmp_path):
    bilm = load_bilm(write_pair(tmp_path / "source", *small_model()))
    assert bilm.vocab is None
    assert bilm.softmax.n_words == N_WORDS


def test_vocabulary_without_softmax_is_ignored(tmp_path):
    bilm = load_bilm(write_pair(tmp_path, *small_model(n_words=None), vocab=["x"]))
    assert bilm.vocab is None
    assert bilm.softmax is None


@pytest.mark.parametrize("n_words", [N_WORDS, None])
def test_export_removes_the_vocabulary_of_another_model(n_words, tmp_path):
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
        found = load_arrays(tmp_path / "weights.hdf5")["softmax/W"]
        np.testing.assert_array_equal(found, bilm.softmax.weight.detach().numpy())
        assert load_bilm(tmp_path).vocab == VOCAB


def test_model_with_a_word_table_is_not_saved_as_hdf5(tmp_path):
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
def test_folders_of_simple_elmo_are_loaded(given, tmp_path):
    options, arrays = small_model()
    write_pair(tmp_path, options, arrays)
    (tmp_path / "weights.hdf5").rename(tmp_path / "model.hdf5")
    found = load_bilm(tmp_path / given).encoder.cnn.embedding.detach().numpy()
    np.testing.assert_array_equal(found, arrays["char_embed"])


def test_export_keeps_files_of_users(tmp_path):
    write_pair(tmp_path / "in", *small_model(n_words=None))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "vocab.txt").write_text("mine\n")
    save_bilm(load_bilm(tmp_path / "in"), tmp_path / "out", "hdf5")
    assert (tmp_path / "out" / "vocab.txt").read_text() == "mine\n"


def test_export_refuses_files_of_users_that_would_be_replaced(tmp_path):
    write_pair(tmp_path / "in", *small_model())
    bilm = load_bilm(tmp_path / "in")
    for name, text in [("options.json", '{"mine": 1}'), ("vocab.txt", "mine\n")]:
        path = tmp_path / name / name
        path.parent.mkdir()
        path.write_text(text)
        with pytest.raises(SourceError, match=f"{name}.* of something else"):
            save_bilm(bilm, path.parent, "hdf5")
        assert path.read_text() == text and [*path.parent.iterdir()] == [path]


def test_two_models_in_a_folder_are_refused(tmp_path):
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
