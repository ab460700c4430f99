import subprocess
import sys

import h5py
import numpy as np
import pytest
from conftest import write_files
from reference import random_arrays, random_options
from typer.testing import CliRunner

from spacy_elmo import load_bilm
from spacy_elmo.cli import app


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(3)
    options = random_options(rng)
    folder = tmp_path / "source"
    folder.mkdir()
    write_files(folder, options, random_arrays(options, rng))
    return folder


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def text(done):
    return " ".join(done.output.split())  # without the line breaks of the terminal


def test_convert_there_and_back_with_the_real_command(source, tmp_path):
    native, back = tmp_path / "native", tmp_path / "back"
    for args in ([source, native], [native, back, "--to", "hdf5"]):
        command = [sys.executable, "-m", "spacy", "elmo", "convert", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    with (
        h5py.File(source / "weights.hdf5") as old,
        h5py.File(back / "weights.hdf5") as new,
    ):
        names = []
        old.visit(names.append)
        for name in names:
            if isinstance(old[name], h5py.Dataset):
                np.testing.assert_array_equal(old[name][()], new[name][()])
    words = [["눈", "snow"]]
    np.testing.assert_array_equal(
        load_bilm(native).embed(words)[0], load_bilm(source).embed(words)[0]
    )


@pytest.mark.parametrize("command", ["convert", "info"])
def test_bad_source_exits_with_a_sentence(command, tmp_path):
    target = [tmp_path / "out"] if command == "convert" else []
    done = call(command, tmp_path / "nowhere", *target)
    assert done.exit_code == 1
    assert "no such file or folder; expected a biLM" in text(done)
    assert "Traceback" not in done.output


def test_unknown_format_is_refused(source, tmp_path):
    assert call("convert", source, tmp_path / "out", "--to", "onnx").exit_code == 2


def test_destination_that_cannot_be_made_exits_with_a_sentence(source, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = call("convert", source, tmp_path / "file")
    assert done.exit_code == 1
    assert "file" in done.output and "Traceback" not in done.output


def test_info_tells_the_sizes(source):
    done = call("info", source)
    assert done.exit_code == 0
    bilm = load_bilm(source)
    for value in (bilm.config.width, bilm.config.lstm.dim, bilm.config.encoder.filters):
        assert str(value) in done.output


@pytest.mark.parametrize("args", [[], ["convert"], ["info"]])
def test_help(args):
    done = call(*args, "--help")
    assert done.exit_code == 0 and "Usage" in done.output
