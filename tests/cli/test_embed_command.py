"""Test what `spacy elmo embed` shows."""

from importlib import import_module

import tqdm
from helpers.command import call
from helpers.pipelines import save_bilm


def test_progress_is_shown(tmp_path, monkeypatch):
    seen = []

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            seen.append(n)
            self.n += n

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.setattr(import_module("spacy_elmo.embedding.embed_file"), "PART", 2)
    source = save_bilm(tmp_path / "bilm")
    text = tmp_path / "a.txt"
    text.write_text("one two\nthree\nfour\nfive\nsix seven\n")
    done = call("embed", source, text, tmp_path / "out.hdf5", "--tokenized")
    assert done.exit_code == 0, done.output
    assert len(seen) > 1 and sum(seen) == 5


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("one two")
    source = save_bilm(tmp_path / "bilm")
    out = tmp_path / "file" / "out.hdf5"
    done = call("embed", source, tmp_path / "file", out)
    assert done.exit_code == 1
    assert "file is not a folder" in " ".join(done.output.split())
