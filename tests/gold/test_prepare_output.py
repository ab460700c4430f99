"""Test that `spacy elmo prepare` writes whole files, over nothing but older ones."""

import os

import pytest
from helpers.command import call, refused
from helpers.full_disk import full_disk
from helpers.gold import TREES, write_files

from spacy_elmo.files import WriteError
from spacy_elmo.gold.prepare_corpus import prepare_corpus

IN_THE_WAY = {
    "a text": lambda path: path.write_text("my notes, which are no docs"),
    "a folder": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to(path.parent / "victim"),
    "a link to nowhere": lambda path: path.symlink_to(path.parent / "nowhere"),
}
if hasattr(os, "mkfifo"):
    IN_THE_WAY["a pipe"] = os.mkfifo


def facts(folder):
    stats = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (s.st_ino, s.st_size, s.st_mtime_ns) for name, s in stats.items()}


@pytest.fixture
def source(tmp_path):
    files = {f"{split}.conllu": TREES for split in ("train", "dev", "test")}
    return write_files(tmp_path / "source", files)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_other_files_are_refused_and_kept(tmp_path, source, split, put):
    output = tmp_path / "output"
    output.mkdir()
    (output / "victim").write_text("mine")
    put(output / f"{split}.spacy")
    before = facts(output)
    assert f"{split}.spacy: found a" in refused("prepare", source, output)
    assert facts(output) == before
    assert (output / "victim").read_text() == "mine"


def test_earlier_output_is_replaced(tmp_path, source):
    output = tmp_path / "output"
    for _ in range(2):
        assert call("prepare", source, output).exit_code == 0
    (output / "dev.spacy").write_bytes(b"")  # as on a full disk
    assert call("prepare", source, output).exit_code == 0


def test_a_full_disk_keeps_the_earlier_output(tmp_path, source):
    splits = {split: [source / f"{split}.conllu"] for split in ("train", "dev")}
    output = tmp_path / "output"
    prepare_corpus(splits, output)
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    with full_disk(100), pytest.raises(WriteError, match="train.spacy: .* is full"):
        prepare_corpus(splits, output, limit=1)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
