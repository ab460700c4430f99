"""Test what the index of a text contains, and when it is built again."""

import json
import shutil

import numpy as np
import pytest
from helpers.analysis import TOKENIZED, make_bilm, make_index, random_sentences, write

from spacy_elmo.analysis import token_index
from spacy_elmo.analysis.token_index import build_index, index_key, open_index
from spacy_elmo.files import one_writer, part_path
from spacy_elmo.fingerprints import checksum_file, fingerprint_data
from spacy_elmo.text.tokenizers import Tokenization

NAMES = ["0", "1", "2", "mix"]


def test_index_has_all_tokens(bilm, tmp_path):
    sentences = random_sentences(30)
    index = make_index(bilm, tmp_path, sentences)
    layers = np.concatenate(bilm.embed(sentences), 1)
    layers = np.concatenate([layers, layers.mean(0, keepdims=True)])
    layers /= np.linalg.norm(layers, axis=2, keepdims=True)
    for number, name in enumerate(NAMES):
        np.testing.assert_allclose(index.get_layer(name), layers[number], atol=1e-3)
    row = 0
    for number, words in enumerate(sentences):
        assert index.get_sentence(number) == words
        for position, word in enumerate(words):
            assert index.locate(row) == (number, position)
            assert index.words[index.tokens[row]] == word
            row += 1
    assert row == len(index.tokens)
    assert len(set(index.words)) == len(index.words)


def test_index_is_used_again_only_if_nothing_changed(bilm, tmp_path):
    sentences = random_sentences(5)
    make_index(bilm, tmp_path, sentences)
    folder, path = tmp_path / "index", tmp_path / "text.txt"

    def reopen(bilm=bilm, text=path, tokenization=TOKENIZED):
        return open_index(folder, index_key(bilm, str(text), tokenization))

    assert reopen() is not None
    assert reopen(make_bilm()) is not None  # the same weights
    assert reopen(make_bilm(1)) is None
    assert reopen(tokenization=Tokenization("en")) is None
    assert reopen(tokenization=Tokenization("de", None, True)) is None
    other = shutil.copy(path, tmp_path / "elsewhere.txt")
    assert reopen(text=other) is not None
    write(path, [*sentences, ["more"]])
    assert reopen() is None
    bilm.precision = "int8"
    assert reopen(text=other) is None


FILES = [
    "layer-1.float16",
    "layer-mix.float16",
    "tokens.npy",
    "starts.npy",
    "words.json",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "zeroed", "longer"])
def test_damaged_index_is_not_used(bilm, tmp_path, name, damage):
    make_index(bilm, tmp_path, random_sentences(5))
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    assert open_index(tmp_path / "index", key) is not None
    broken = tmp_path / "index" / name
    data = bytearray(broken.read_bytes())
    broken.unlink()
    middle = len(data) // 2
    if damage == "cut":
        del data[middle:]
    elif damage == "flipped":
        data[-3] ^= 1
    elif damage == "zeroed":
        data[middle:] = bytes(len(data) - middle)
    elif damage == "longer":
        data += b" "
    if damage != "gone":
        broken.write_bytes(data)
    said = []
    assert open_index(tmp_path / "index", key, said.append) is None
    [sentence] = said
    assert str(tmp_path / "index") in sentence and "built again" in sentence


def test_a_damaged_key_of_an_index_is_said(bilm, tmp_path):
    make_index(bilm, tmp_path, random_sentences(5))
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    path = tmp_path / "index" / "index.json"
    said = []
    other = index_key(bilm, str(tmp_path / "text.txt"), Tokenization("de"))
    assert open_index(tmp_path / "index", other, said.append) is None
    assert not said  # nothing is damaged
    path.write_text(path.read_text().replace(key["text"], key["text"][::-1]))
    assert open_index(tmp_path / "index", key, said.append) is None
    assert len(said) == 1 and "index.json has changed" in said[0]


WRONG = {
    "tokens.npy": [
        np.zeros(0, np.int32),
        np.zeros((3, 3), np.int32),
        np.full(20, 10**6),
        np.full(20, -1),
        np.zeros(20),
        np.array(["x"] * 20),
    ],
    "starts.npy": [np.zeros(0, np.int64), np.array([0, 10**9]), np.array([5, 3, 0])],
    "words.json": [[], {}, 3, None, [1, 2], ["x"] * 1000, [["x"]]],
    "index.json": [
        {"width": 0},
        {"width": -1},
        {"width": 10**30},
        {"width": "8"},
        {"layers": ["0", "/etc/passwd"]},
        {"layers": 3},
        {"checksums": 3},
        {"checksums": {}},
        {"checksums": {"../x": "y"}},
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_index_with_wrong_contents_and_right_checksums_is_not_used(
    bilm, tmp_path, name
):
    folder = tmp_path / "index"
    for wrong in WRONG[name]:
        shutil.rmtree(folder, ignore_errors=True)
        make_index(bilm, tmp_path, random_sentences(5))
        key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
        meta = json.loads((folder / "index.json").read_text())
        if name == "index.json":
            meta.update(wrong)
        else:
            if name == "words.json":
                (folder / name).write_text(json.dumps(wrong))
            else:
                np.save(folder / name, wrong)
            meta["checksums"][name] = checksum_file(folder / name)
        del meta["checksum"]
        meta["checksum"] = fingerprint_data(meta)
        (folder / "index.json").write_text(json.dumps(meta))
        assert open_index(folder, key) is None, wrong


def test_one_index_is_built_at_a_time(bilm, tmp_path):
    make_index(bilm, tmp_path, random_sentences(5))
    with one_writer(tmp_path / "index"):
        with pytest.raises(OSError, match="is writing it; wait for it to end"):
            make_index(bilm, tmp_path, random_sentences(5))
    make_index(bilm, tmp_path, random_sentences(5))


def test_interrupted_build_leaves_what_was_there(bilm, tmp_path, monkeypatch):
    sentences = random_sentences(5)
    make_index(bilm, tmp_path, sentences)
    folder, path = tmp_path / "index", str(tmp_path / "text.txt")
    old = index_key(bilm, path, TOKENIZED)
    other = make_bilm(1)
    key = index_key(other, path, TOKENIZED)

    def interrupted(sentences, tokenization):
        yield from [["one"], ["two"]]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(token_index, "load_sentences", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_index(other, path, TOKENIZED, folder, key)
    assert open_index(folder, key) is None
    assert open_index(folder, old).get_sentence(0) == sentences[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "text.txt"]


def test_killed_build_is_not_taken_for_an_index(bilm, tmp_path):
    sentences = random_sentences(5)
    index = make_index(bilm, tmp_path, sentences)
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    # Leave the folder as a process would that was killed while it wrote the index.
    part = tmp_path / "index.0123456789abcdef.part"
    (tmp_path / "index").rename(part)
    (part / "index.json").unlink()
    (part / "leftover").write_text("")
    assert open_index(tmp_path / "index", key) is None
    index = make_index(bilm, tmp_path, sentences)
    assert index.get_sentence(4) == sentences[4]
    assert not (tmp_path / "index" / "leftover").exists()
    assert not part.exists()


def test_folders_that_are_no_index_are_not_overwritten(bilm, tmp_path):
    (tmp_path / "index").mkdir()
    make_index(bilm, tmp_path, random_sentences(5))  # an empty folder may be used
    shutil.rmtree(tmp_path / "index")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match="found a folder that is not an index"):
        make_index(bilm, tmp_path, random_sentences(5))
    assert (tmp_path / "index" / "thesis.txt").read_text() == "all of it"


def test_an_index_json_of_somebody_else_is_not_overwritten(bilm, tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    for contents in ({}, {"pages": ["home"]}, {"key": 1, "width": 8}):
        (folder / "index.json").write_text(json.dumps(contents))
        with pytest.raises(ValueError, match="found a folder that is not an index"):
            make_index(bilm, tmp_path, random_sentences(5))
        assert json.loads((folder / "index.json").read_text()) == contents


def test_a_file_of_somebody_else_in_an_index_is_kept(bilm, tmp_path):
    make_index(bilm, tmp_path, random_sentences(5))
    folder = tmp_path / "index"
    graph = folder / "layer-0.usearch"
    for path in (
        graph,
        folder / "layer-0.usearch.checksum",
        part_path(graph),
        folder / ".DS_Store",
    ):
        path.touch()
    index = make_index(bilm, tmp_path, random_sentences(6))
    assert len(index.starts) == 7 and not graph.exists()
    (folder / "neighbors.json").write_text("mine")
    with pytest.raises(ValueError, match="index: found neighbors.json, which would be"):
        make_index(bilm, tmp_path, random_sentences(5))
    assert (folder / "neighbors.json").read_text() == "mine"


def test_an_index_may_be_behind_a_link(bilm, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "index").symlink_to(tmp_path / "disk" / "index")
    for n in (5, 6, 7):
        assert len(make_index(bilm, tmp_path, random_sentences(n)).starts) == n + 1
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"disk", "index", "text.txt"} and (tmp_path / "index").is_symlink()
