import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
import spacy
import srsly
from helpers.command import call, text
from helpers.models import write_files
from helpers.reference import random_arrays, random_options
from helpers.tasks import elmo_alone, make_examples, save_tiny
from typer.main import get_command

from spacy_elmo import load_bilm
from spacy_elmo.cli import app
from spacy_elmo.files import one_writer


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(3)
    options = random_options(rng)
    folder = tmp_path / "source"
    folder.mkdir()
    write_files(folder, options, random_arrays(options, rng))
    return folder


@pytest.mark.slow
def test_conversion_to_native_and_back_keeps_all_weights(source, tmp_path):
    native, back = tmp_path / "native", tmp_path / "back"
    for args in ([source, native], [native, back, "--to", "hdf5"]):
        done = call("convert", *args)
        assert done.exit_code == 0, done.output
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


@pytest.mark.parametrize("name", sorted(get_command(app).commands))
def test_each_command_has_help(name):
    done = call(name, "--help")
    assert done.exit_code == 0
    assert "Usage:" in text(done) and "--help" in text(done)


@pytest.mark.slow
def test_a_terminal_without_hangul_gets_question_marks(tmp_path):
    path = tmp_path / "senses.jsonl"
    uses = [("eye", "눈이 아프다."), ("snow", "눈이 온다."), ("eye", "눈이 크다.")]
    place = {"word": "눈", "start": 0, "end": 1}
    srsly.write_jsonl(path, [{**place, "sense": s, "text": t} for s, t in uses])
    command = [sys.executable, "-m", "spacy", "elmo", "senses", "ko_elmo_sm"]
    done = subprocess.run(
        [*command, str(path), "--lang", "ko"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout


def test_info_refuses_a_damaged_pipeline_with_one_sentence(tmp_path):
    spacy.blank("en").to_disk(tmp_path)
    config = tmp_path / "config.cfg"
    config.write_text(config.read_text() + "\n[nlp]\nlang = null\n")
    done = call("info", tmp_path)
    assert done.exit_code == 1
    assert "cannot be loaded as a pipeline: While reading from" in text(done)
    assert "section 'nlp' already exists" in text(done)


def test_info_refuses_a_package_that_is_no_pipeline():
    done = call("info", "numpy")
    assert done.exit_code == 1
    assert "numpy: cannot be loaded as a pipeline" in text(done)


@pytest.mark.parametrize("command", ["convert", "info"])
def test_a_missing_source_is_refused_with_one_sentence(command, tmp_path):
    target = [tmp_path / "out"] if command == "convert" else []
    done = call(command, tmp_path / "nowhere", *target)
    assert done.exit_code == 1
    assert "no such file or folder; expected a biLM" in text(done)
    assert "Traceback" not in done.output


def test_unknown_format_is_refused(source, tmp_path):
    assert call("convert", source, tmp_path / "out", "--to", "onnx").exit_code == 2


def test_a_file_as_destination_is_refused_with_one_sentence(source, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = call("convert", source, tmp_path / "file" / "below")
    assert done.exit_code == 1 and "file is not a folder" in text(done)
    done = call("convert", source, tmp_path / "file")
    assert done.exit_code == 1
    assert "file" in done.output and "Traceback" not in done.output


def test_info_prints_the_sizes(source):
    done = call("info", source)
    assert done.exit_code == 0
    bilm = load_bilm(source)
    for value in (bilm.config.width, bilm.config.lstm.dim, bilm.config.encoder.filters):
        assert str(value) in done.output


@pytest.mark.parametrize("args", [[], ["convert"], ["info"]])
def test_help(args):
    done = call(*args, "--help")
    assert done.exit_code == 0 and "Usage" in done.output


@pytest.mark.slow
def test_info_prints_the_mix_of_each_component(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": str(save_tiny(tmp_path / "bilm"))})
    tok2vec = elmo_alone(init_weights=[0.0, 0.0, 1.0], init_gamma=0.5)
    nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path / "pipeline")
    done = call("info", tmp_path / "pipeline")
    assert done.exit_code == 0, done.output
    assert re.search(r"tagger +0\.212 0\.212 0\.576 +0\.500", done.output)
    assert "2 + 1" in done.output  # the layers of the biLM
    spacy.blank("en").to_disk(tmp_path / "bare")
    done = call("info", tmp_path / "bare")
    assert done.exit_code == 1
    assert "a pipeline without 'elmo'" in " ".join(done.output.split())


def test_convert_never_writes_into_a_folder_of_something_else(source, tmp_path):
    dest = tmp_path / "dest"
    dest.mkdir()
    assert call("convert", source, dest).exit_code == 0  # into an empty folder
    (dest / "README.md").write_text("mine")
    assert call("convert", source, dest).exit_code == 0  # over a biLM
    done = call("convert", source, dest, "--to", "hdf5")
    assert done.exit_code == 1 and "found README.md, config.json" in text(done)
    other = tmp_path / "llama"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "llama"}')
    for name in ("weights.safetensors", "tokenizer.json"):
        (other / name).write_text("mine")
    done = call("convert", source, other)
    assert done.exit_code == 1 and "found config.json, tokenizer.json" in text(done)
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    before = sorted(tmp_path.rglob("*"))
    done = call("convert", source, tmp_path / "pipeline")
    assert done.exit_code == 1 and "expected an empty folder, a biLM" in text(done)
    assert sorted(tmp_path.rglob("*")) == before
    assert (dest / "README.md").read_text() == "mine"


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("format", ["native", "hdf5"])
def test_two_conversions_to_one_folder(exists, format, source, tmp_path):
    args = ("convert", source, tmp_path / "dest", "--to", format)
    if exists:
        assert call(*args).exit_code == 0
    with one_writer(tmp_path / "dest"):
        done = call(*args)
        assert done.exit_code == 1 and "is writing it; wait for it" in text(done)
    assert call(*args).exit_code == 0
    assert not list(tmp_path.rglob("*lock"))


def test_info_as_json(source, tmp_path):
    printed = call("info", source, "--json").stdout
    found = srsly.json_loads(printed)["bilms"][str(source)]
    config = load_bilm(source).config
    assert (found["layers"], found["width"]) == (3, config.width)
    assert found["lstm"] == config.to_dict()["lstm"]
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"bilm": str(source)})
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    found = srsly.json_loads(call("info", tmp_path / "pipeline", "--json").stdout)
    assert found["mixes"] == [] and len(found["bilms"]) == 1
