"""Write a corpus once, and again only if something has changed."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.corpora import build, sentences, write
from helpers.full_disk import full_disk
from helpers.pretraining import write_text

from spacy_elmo.files import WriteError, one_writer
from spacy_elmo.fingerprints import fingerprint_data
from spacy_elmo.pretrain import corpus as corpus_module
from spacy_elmo.pretrain import corpus_writer
from spacy_elmo.pretrain.corpus import Corpus, CorpusError
from spacy_elmo.text import chunks, tokenized_chunks

TEXT = "Snow fell. It did not stop!\nDr. Kim's dog (3 kg) left...\n\nThe end?  «Yes.»\n"


def zero(path):
    data = path.read_bytes()
    path.write_bytes(bytes(len(data)))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "missing": Path.unlink,
    "zeros": zero,
    "a bit": flip,
    "half": lambda path: path.write_bytes(path.read_bytes()[::2]),
    "more": lambda path: path.write_bytes(path.read_bytes() + b"[{}]"),
}
if hasattr(os, "mkfifo"):
    DAMAGES["a pipe"] = lambda path: (path.unlink(), os.mkfifo(path))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_processes_change_no_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 200)
    monkeypatch.setattr(tokenized_chunks, "FEW_CHUNKS", 2)
    pools = []
    real = tokenized_chunks.ProcessPoolExecutor

    def pool(n_process, **options):
        pools.append(n_process)
        return real(n_process, **options)

    monkeypatch.setattr(tokenized_chunks, "ProcessPoolExecutor", pool)
    path = write_text(tmp_path / "a.txt")
    assert path.stat().st_size > 10 * 200
    for n in (1, 2):
        build(tmp_path / str(n), path, dev_share=0.3, n_process=n)
    assert pools == [2]
    assert files(tmp_path / "1") == files(tmp_path / "2")


@pytest.mark.slow
def test_written_again_only_if_something_changed(tmp_path):
    path = write_text(tmp_path / "a.txt")
    folder = tmp_path / "corpus"
    assert build(folder, path)[1]
    before = files(folder)
    corpus, new = build(folder, path, n_process=2)
    assert not new and files(folder) == before
    assert len(sentences(corpus)) == 90
    for options in ({"lang": "de"}, {"dev_share": 0.1}, {"tokenized": True}):
        assert build(folder, path, **options)[1]
        assert not build(folder, path, **options)[1]
    build(folder, path)
    os.utime(path, ns=(0, 0))
    assert build(folder, path)[1]
    write(path, path.read_text() + "More.")
    assert build(folder, path)[1]
    (folder / corpus_module.META).unlink()  # as if the run had been killed
    assert build(folder, path)[1]


def test_a_text_is_the_same_by_any_name(tmp_path, monkeypatch):
    path = write_text(tmp_path / "a.txt")
    assert build(tmp_path / "corpus", path)[1]
    monkeypatch.chdir(tmp_path)
    assert not build(tmp_path / "corpus", "a.txt")[1]


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    path = write_text(tmp_path / "a.txt")
    build(tmp_path, path)
    build(tmp_path, path, lang="de")
    assert path.exists()


@pytest.mark.parametrize("name", [*corpus_module.FILES, "a link"])
def test_files_of_somebody_else_are_kept(tmp_path, name):
    folder = tmp_path / "corpus"
    folder.mkdir()
    if name == "a link":
        (folder / "words.txt").symlink_to(tmp_path / "nowhere")
    else:
        (folder / name).write_text('{"my": "corpus"}')
    before = sorted(folder.iterdir())
    with pytest.raises(ValueError, match=r"corpus: found .*, which no pretraining"):
        build(folder, write_text(tmp_path / "a.txt"), say=pytest.fail)
    assert sorted(folder.iterdir()) == before
    if name != "a link":
        assert (folder / name).read_text() == '{"my": "corpus"}'


def test_a_corpus_is_made_after_its_files_were_half_moved(tmp_path, monkeypatch):
    def fail(old, new):
        if Path(new).name == "counts.npy":
            raise KeyboardInterrupt
        replace(old, new)

    path = write_text(tmp_path / "a.txt")
    replace = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path / "corpus", path)
    assert {*files(tmp_path / "corpus")} == {"corpus.json", "words.txt"}
    assert build(tmp_path / "corpus", path)[1]


def test_long_documents_are_cut_into_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_writer, "MAX_BLOCK", 20)
    path = write(tmp_path / "a.txt", "a b c d.\n" * 30 + "\n" + "e.\n" * 3)
    corpus, _ = build(tmp_path / "corpus", path)
    blocks = corpus.train.blocks
    assert corpus.meta["train"]["n_documents"] == 2
    assert blocks[0] == 0 and 150 in blocks
    assert not corpus.train.tokens[blocks].any()
    assert np.diff(blocks).tolist() == [20] * 7 + [10]


@pytest.mark.parametrize("name", corpus_module.FILES)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_corpus_is_made_again(tmp_path, name, damage):
    path = write_text(tmp_path / "a.txt")
    folder = tmp_path / "corpus"
    build(folder, path, dev_share=0.1)
    before = files(folder)
    damage(folder / name)
    said = []
    assert build(folder, path, dev_share=0.1, say=said.append)[1]
    assert files(folder) == before
    if (damage, name) != (Path.unlink, corpus_module.META):
        assert len(said) == 1 and said[0].startswith(f"{folder / name}: ")
        assert said[0].endswith("; preparing the text again")


@pytest.mark.parametrize("name", ["train", "dev", "checksums", "problems"])
@pytest.mark.parametrize("value", [None, 3, []])
def test_facts_with_wrong_contents_and_a_right_checksum(name, value, tmp_path):
    said = build_after_forging(tmp_path, name, value)
    assert f"found no section '{name}'" in said[0]


def build_after_forging(tmp_path, name, value):
    """Build a corpus, change a fact and its checksum, and return what is said when the
    corpus is built again."""
    path = write_text(tmp_path / "a.txt")
    build(tmp_path / "corpus", path)
    meta = json.loads((tmp_path / "corpus" / "corpus.json").read_text("utf8"))
    del meta["checksum"]
    meta[name] = value
    meta["checksum"] = fingerprint_data(meta)
    (tmp_path / "corpus" / "corpus.json").write_text(json.dumps(meta))
    said = []
    assert build(tmp_path / "corpus", path, say=said.append)[1]
    return said


@pytest.mark.parametrize(
    "name, value, found",
    [
        ("n_distinct", None, "n_distinct = None"),
        ("train", {}, "train.n_words = None"),
        ("dev", {"n_words": "x"}, "dev.n_words = 'x'"),
        ("dev", {"n_words": 3, "n_sentences": -1}, "dev.n_sentences = -1"),
        ("problems", {"x": "y"}, "problems.x = 'y'"),
        ("problems", {"x": True}, "problems.x = True"),
    ],
)
def test_counts_that_are_none_and_a_right_checksum(name, value, found, tmp_path):
    said = build_after_forging(tmp_path, name, value)
    assert f"corpus.json: found {found}; expected a count; preparing" in said[0]


@pytest.mark.parametrize(
    "name, array, expected",
    [
        ("train.tokens", [0, 10**6], "found the numbers 0 to 1000000; expected 0 to"),
        ("train.tokens", [0, -5], "found the numbers -5 to 0; expected 0 to"),
        ("train.blocks.npy", [0, 9, 9], "found blocks that are not in order"),
        ("train.blocks.npy", [0, 10**6], "found blocks that are not in order"),
        ("train.blocks.npy", [3], "found blocks that are not in order"),
        ("dev.blocks.npy", [[0, 1]], "found something other than a row of integers"),
        ("counts.npy", [0.5], "found something other than a row of integers"),
        ("counts.npy", [1, 2], "expected one for each of"),
    ],
)
def test_numbers_that_do_not_fit_are_one_sentence(tmp_path, name, array, expected):
    corpus, _ = build(tmp_path / "corpus", write_text(tmp_path / "a.txt"))
    if name.endswith(".npy"):
        np.save(tmp_path / "corpus" / name, np.array(array))
    else:
        np.array(array, dtype="<i4").tofile(tmp_path / "corpus" / name)
    with pytest.raises(CorpusError, match=f"{name}: .*{expected}"):
        Corpus(tmp_path / "corpus", check=False)


@pytest.mark.parametrize("n_bytes", [0, 100, 2000])
def test_a_full_disk_is_one_sentence(tmp_path, n_bytes):
    path = write_text(tmp_path / "a.txt")
    with full_disk(n_bytes), pytest.raises(WriteError, match="the disk is full"):
        build(tmp_path / "corpus", path)
    assert not list((tmp_path / "corpus").iterdir())
    build(tmp_path / "corpus", path)
    build(tmp_path / "other", path)
    assert files(tmp_path / "corpus") == files(tmp_path / "other")


def test_one_writer_at_a_time(tmp_path):
    path = write_text(tmp_path / "a.txt")
    (tmp_path / "corpus").mkdir()
    with one_writer(tmp_path / "corpus"), pytest.raises(WriteError, match="process"):
        build(tmp_path / "corpus", path)
    build(tmp_path / "corpus", path)
    with one_writer(tmp_path / "corpus"):  # a corpus that is there can be used
        assert not build(tmp_path / "corpus", path)[1]
