"""Test that one `compare` at a time writes to a folder, and what a full disk does."""

import errno
import os

import pytest
from helpers.command import refused
from helpers.comparing import compare, make_command
from helpers.full_disk import full_disk

from spacy_elmo.compare.jobs import JOBS
from spacy_elmo.files import WriteError, one_writer

FEW = {"variants": ["baseline"], "seeds": [3]}


@pytest.mark.slow
def test_one_comparison_at_a_time(data, fake_training, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    with one_writer(output):
        said = refused(*make_command(data, output))
    assert f"output: process {os.getpid()} on" in said
    assert list(output.iterdir()) == [] and fake_training.take_trained() == []
    left = output / "runs" / f"baseline-1-3.json.{'1f' * 8}.part"  # of a killed process
    left.parent.mkdir()
    left.touch()
    compare(data, output, FEW)
    names = {path.name for path in output.iterdir()}
    assert names == {"compare.json", "compare.md", "data", "runs"}
    assert not left.exists()


@pytest.mark.slow
def test_a_full_disk_is_one_sentence(data, fake_training, tmp_path, monkeypatch):
    whole = compare(data, tmp_path / "whole", FEW)
    output = tmp_path / "output"
    for n_bytes in (0, 300):
        with full_disk(n_bytes), pytest.raises(WriteError) as error:
            compare(data, output, FEW)
        assert f"{output.name}" in str(error.value)
        assert "cannot be written because the disk is full; make" in str(error.value)

    def fail(**arguments):
        raise ValueError(f"a-run: {OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))}")

    with monkeypatch.context() as patch:  # a worker process meets it
        patch.setitem(JOBS, "train", fail)
        with pytest.raises(WriteError, match="output: cannot be written because the"):
            compare(data, output, {**FEW, "seeds": [9]})
    assert compare(data, output, FEW) == {**whole, "title": "output"}
    json = (tmp_path / "whole" / "compare.json").read_bytes()
    found = (output / "compare.json").read_bytes()
    assert found == json.replace(b'"whole"', b'"output"')
