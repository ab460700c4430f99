"""Write a corpus once, and again only if something has changed."""

import os

import numpy as np
import pytest
from helpers.corpora import build, sentences, write
from helpers.pretraining import write_text

from spacy_elmo.pretrain import corpus as corpus_module
from spacy_elmo.pretrain import corpus_writer
from spacy_elmo.text import chunks, tokenized_chunks

TEXT = "Snow fell. It did not stop!\nDr. Kim's dog (3 kg) left...\n\nThe end?  «Yes.»\n"


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


def test_long_documents_are_cut_into_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_writer, "MAX_BLOCK", 20)
    path = write(tmp_path / "a.txt", "a b c d.\n" * 30 + "\n" + "e.\n" * 3)
    corpus, _ = build(tmp_path / "corpus", path)
    blocks = corpus.train.blocks
    assert corpus.meta["train"]["n_documents"] == 2
    assert blocks[0] == 0 and 150 in blocks
    assert not corpus.train.tokens[blocks].any()
    assert np.diff(blocks).tolist() == [20] * 7 + [10]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "words", "tokens"])
def test_a_broken_corpus_is_as_none(tmp_path, damage):
    path = write_text(tmp_path / "a.txt")
    folder = tmp_path / "corpus"
    build(folder, path, dev_share=0.1)
    before = files(folder)
    if damage in ("words", "tokens"):
        name = {"words": corpus_module.WORDS, "tokens": "dev.tokens"}[damage]
        (folder / name).unlink()
    else:
        (folder / corpus_module.META).write_text(damage, "utf8")
    assert build(folder, path, dev_share=0.1)[1]
    assert files(folder) == before
