"""Whatever a user gives to a command, the answer is one sentence and exit code 1."""

import json
import os
import shutil
from pathlib import Path

import pytest
from helpers.command import call, refused
from helpers.pretraining import write_text

from spacy_elmo.cli.common_options import exit_on_error

CONFIGS = Path(__file__).parents[2] / "configs"
SPACY_CONFIG = CONFIGS / "tagging_baseline.cfg"
DEMO = CONFIGS / "pretrain_demo.cfg"
HUGE = "1" + "0" * 400


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def pretrain(config, tmp_path, *args):
    return refused("pretrain", config, "--output", tmp_path / "out", *args)


@pytest.mark.parametrize(
    "text, found",
    [
        ("[", "cannot be read as a config"),
        ("[paths", "cannot be read as a config"),
        ("[paths]\nraw_text = (", "no section 'encoder'"),
        ("[paths]\nraw_text = [", "no section 'encoder'"),
        ("[paths]\nraw_text = ${", "cannot be read as a config"),
        ("[paths]\nraw_text = ${paths.raw_text}", "cannot be read as a config"),
        ("[paths]\nraw_text = ${a.b.c:d.e}", "cannot be read as a config"),
        ("[paths]\n[paths]\n", "cannot be read as a config"),
        ("[training]\n@ = 1\n", "expected"),
        (f"[training]\nseed = {HUGE}\n", "training.seed"),
        (f"[training]\ndropout = {HUGE}\n", "training.dropout"),
        (f"[training]\nmax_minutes = {HUGE}\n", "training.max_minutes"),
        ("[corpus]\nencoding = 3\n", "corpus.encoding is 3; expected str"),
        ("[nlp]\nlang = en\n", "found a training config of spaCy"),
        ("\0", "cannot be read as a config"),
        ("\ud800", "cannot be read as a config"),
        ("[" * 10**5, "cannot be read as a config"),
        ("[paths]\nraw_text = " + "[" * 10**5, "no section 'encoder'"),
    ],
)
def test_configs_of_every_kind(tmp_path, text, found):
    path = tmp_path / "a.cfg"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert found in pretrain(path, tmp_path)


def test_a_training_config_of_spacy_is_recognised(tmp_path):
    found = pretrain(SPACY_CONFIG, tmp_path)
    assert "found a training config of spaCy" in found


def test_options_of_every_kind(tmp_path):
    config = DEMO
    text = write_text(tmp_path / "a.txt")
    options = ("--paths.raw_text", text)
    assert "found --training.seed without a value" in pretrain(
        config, tmp_path, *options, "--training.seed"
    )
    for option in ("--nonsense", "nonsense", "--training"):
        assert option in pretrain(config, tmp_path, *options, option)
    for value in (HUGE, "[" * 5000, "1e999", '"', "\\ud800"):
        assert "training.seed" in pretrain(
            config, tmp_path, *options, "--training.seed", value
        )
    assert "expected one that Python knows" in pretrain(
        config, tmp_path, *options, "--corpus.encoding", "klingon"
    )


@pytest.mark.parametrize("dim", [10**13, 2**53])
def test_sizes_that_need_more_memory_than_there_is(tmp_path, dim):
    text = write_text(tmp_path / "a.txt")
    found = pretrain(
        DEMO, tmp_path, "--paths.raw_text", text, "--model.lstm.dim", str(dim)
    )
    assert "This needs more memory than there is (" in found


@pytest.mark.parametrize("command", ["prepare", "probe"])
def test_limits_beyond_what_can_be_counted_name_the_option(tmp_path, command):
    done = call(command, "a", tmp_path / "b", "--limit", 10**30)
    assert done.exit_code == 2 and "--limit" in done.output


def test_pipes_and_devices_are_not_read(tmp_path, fifo, source):
    out, text = tmp_path / "out", write_text(tmp_path / "a.txt")
    assert "found a pipe; expected a file" in pretrain(fifo, tmp_path)
    config = DEMO
    assert "found a pipe" in pretrain(config, tmp_path, "--paths.raw_text", fifo)
    words = ("--paths.raw_text", text, "--paths.output_vocab")
    for path, kind in ((fifo, "a pipe"), ("/dev/zero", "a device")):
        assert f"found {kind}" in pretrain(config, tmp_path, *words, path)
    assert "found a pipe" in refused("compare", fifo, SPACY_CONFIG, "--output", out)
    assert "found a pipe" in refused("embed", source, fifo, tmp_path / "a.hdf5")
    assert "found a pipe" in refused("senses", source, fifo)
    query = ("neighbors", source, text, "--query-file", fifo)
    assert "found a pipe" in refused(*query)
    for name in ("train.conllu", "train.jsonl", "train.iob", "train.spacy"):
        path = tmp_path / name
        os.mkfifo(path)
        assert "found a pipe" in refused("prepare", "--train", path, out)
    data = tmp_path / "x.data.xml"
    os.mkfifo(tmp_path / "x.gold.key.txt")
    shutil.copy(text, data)
    assert "found a pipe" in refused("probe", source, data)
    (tmp_path / "results").mkdir()
    os.mkfifo(tmp_path / "results" / "a.json")
    os.mkfifo(tmp_path / "results" / "log.jsonl")
    found = refused("report", tmp_path / "results")
    assert found.count("found a pipe") == 2


def test_outputs_are_checked_before_the_work(tmp_path, source):
    text = write_text(tmp_path / "a.txt")
    taken = tmp_path / "taken"
    taken.write_text("a file")
    config = (DEMO, "--paths.raw_text", text)
    for output in (taken, taken / "below" / "it"):
        expected = f"cannot be written because {taken} is not a folder"
        assert expected in refused("pretrain", *config, "--output", output)
        assert expected in refused(
            "compare", SPACY_CONFIG, SPACY_CONFIG, "--output", output
        )
        assert expected in refused("prepare", "--train", text, output)
        assert expected in refused("report", tmp_path, "--output", output / "a.html")
        assert expected in refused("evaluate", source, text, "-o", output / "a.json")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "found a folder" in refused("evaluate", source, text, "-o", folder)
    assert "found a folder" in refused("report", tmp_path, "-o", folder)
    assert taken.read_text() == "a file"


def test_files_of_something_else_are_not_overwritten(tmp_path, source, fifo):
    text = write_text(tmp_path / "a.txt")
    mine = tmp_path / "mine.json"
    mine.write_text('{"mine": 1}\n{"mine": 2}')
    device = tmp_path / "device"
    device.symlink_to("/dev/null")
    before = {path: path.read_bytes() for path in (text, mine)}
    commands = [
        ("evaluate", source, text, "--surprisal"),
        ("evaluate", source, text, "--output"),
        ("neighbors", source, text, "--query", "ban", "--word", "ban", "--output"),
        ("senses", source, text, "--output"),
        ("probe", source, text, "--output"),
        ("report", tmp_path, "--output"),
    ]
    for command in commands:
        for path in before:
            assert "which is not overwritten" in refused(*command, path)
        assert "found a pipe" in refused(*command, fifo)
        assert "found a device" in refused(*command, device)
    config = tmp_path / "mine.cfg"
    os.mkfifo(config)
    assert "found a pipe" in refused("init-config", "ner", config, "--force")
    assert before == {path: path.read_bytes() for path in before}
    assert fifo.is_fifo() and device.is_symlink()


def test_results_of_the_same_command_are_replaced(tmp_path):
    text = write_text(tmp_path / "a.txt", n_documents=1)
    outputs = (tmp_path / "a.json", tmp_path / "a.tsv", tmp_path / "page.html")
    (tmp_path / "a.json").touch()
    for _ in range(2):
        for command in (
            ("evaluate", "en_elmo_sm", text, "--output", outputs[0]),
            ("evaluate", "en_elmo_sm", text, "--surprisal", outputs[1]),
            ("report", tmp_path, "--output", outputs[2]),
        ):
            assert call(*command).exit_code == 0
    assert all(path.stat().st_size > 50 for path in outputs)


@pytest.mark.parametrize("value", [3, ["en"], {"a": 1}, True])
@pytest.mark.parametrize("key", ["lang", "tokenizer"])
def test_wrong_facts_about_the_training(tmp_path, source, key, value):
    path = source / "config.json"
    config = json.loads(path.read_text())
    config["training"] = {**(config.get("training") or {}), key: value}
    path.write_text(json.dumps(config))
    text = write_text(tmp_path / "a.txt")
    found = refused("embed", source, text, tmp_path / "a.hdf5")
    assert f"'{key}' of section 'training'" in found and "expected" in found


@pytest.mark.parametrize(
    "error",
    [
        IndexError("a\nb"),
        EOFError(),
        OverflowError("too large"),
        MemoryError(),
        RecursionError("too deep"),
        KeyError("x"),
    ],
)
def test_errors_of_libraries_are_one_sentence(capsys, monkeypatch, error):
    def fail():
        with exit_on_error():
            raise error

    with pytest.raises(SystemExit) as caught:
        fail()
    assert caught.value.code == 1
    captured = capsys.readouterr()
    printed = captured.out + captured.err
    assert type(error).__name__ in printed or "memory" in printed
    assert "Traceback" not in printed
    monkeypatch.setenv("SPACY_ELMO_TRACEBACK", "1")
    if not isinstance(error, MemoryError):
        with pytest.raises(type(error)):
            fail()
