"""Check that the files written by commands fit the classes in spacy_elmo/results.py,
and have only keys that are declared there."""

import json

import pytest
import srsly
from helpers.analysis import make_bilm, save
from helpers.command import call
from helpers.comparing import compare, save_data
from helpers.pretraining import train, write_config, write_text
from pydantic import BaseModel, RootModel

from spacy_elmo import results
from spacy_elmo.analysis import linear_classifier

ROWS = {
    "config": results.ConfigRow,
    "step": results.StepRow,
    "evaluation": results.EvaluationRow,
}
CONLLU = (
    "1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_\n2\tplay\tplay\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
)
WSD = """<corpus lang="en">{}</corpus>"""
WSD_TEXT = """<text id="d{n}"><sentence id="d{n}.s0"><wf lemma="a" pos="DET">A</wf>
<instance id="d{n}.s0.t0" lemma="play" pos="NOUN">play</instance></sentence></text>"""


def undeclared_keys(value):
    """Return the keys of a result, at any depth, that its class does not declare."""
    if isinstance(value, RootModel):
        return undeclared_keys(value.root)
    if isinstance(value, BaseModel):
        inner = [
            undeclared_keys(getattr(value, name)) for name in value.model_fields_set
        ]
        return [*(value.model_extra or {}), *sum(inner, [])]
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(undeclared_keys, value), []) if isinstance(value, list) else []


def check_form(data, form):
    """Check that data are the same after they were parsed by a class and written again.

    form (type[BaseModel]): A class of spacy_elmo/results.py.
    """
    result = form.model_validate(data)
    assert undeclared_keys(result) == []
    assert results.as_json(result) == data


def test_undeclared_keys_are_found_at_any_depth():
    row = {"name": "mix", "accuracy": 1.0, "colour": "red"}
    task = {"task": "pos", "train": 1, "dev": 1, "rows": [row], "note": ""}
    probe = results.Probe.model_validate({"kind": "probe", "tasks": [task]})
    assert sorted(undeclared_keys(probe)) == ["colour", "note"]
    speeds = results.Speeds({"x": {"fingerprint": "", "words_per_second": 1, "y": 2}})
    assert undeclared_keys(speeds) == ["y"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Run a tiny pretraining, and return its output folder."""
    folder = tmp_path_factory.mktemp("pretraining")
    config = write_config(folder / "x.cfg", write_text(folder / "x.txt"))
    train(config, folder / "output")
    return folder / "output"


def test_log_of_a_pretraining(trained):
    lines = (trained / results.LOG_NAME).read_text("utf8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        check_form(row, ROWS[row["type"]])
    assert {row["type"] for row in rows} == set(ROWS)


def test_evaluate(trained, tmp_path):
    path = tmp_path / "folder" / "x.json"
    text = write_text(tmp_path / "x.txt")
    done = call("evaluate", trained / "model-best", text, "--output", path)
    assert done.exit_code == 0, done.output
    check_form(srsly.read_json(path), results.Perplexity)
    assert "kind" not in srsly.read_json(path)


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save(make_bilm(), tmp_path_factory.mktemp("bilm") / "bilm")


def run(form, *args):
    """Run a command whose last argument is the file to write, and check the file."""
    *args, path = args
    done = call(*args, "--output", path)
    assert done.exit_code == 0, done.output
    check_form(srsly.read_json(path), form)


def test_probe_of_tags(bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(linear_classifier, "MIN_STEPS", 20)
    (tmp_path / "x.conllu").write_text(CONLLU * 3)
    (tmp_path / "y.conllu").write_text(CONLLU)
    files = tmp_path / "x.conllu", tmp_path / "y.conllu"
    run(results.Probe, "probe", bilm, *files, tmp_path / "x.json")


def test_probe_of_senses(bilm, tmp_path):
    texts = "".join(WSD_TEXT.format(n=n) for n in range(10))
    (tmp_path / "x.data.xml").write_text(WSD.format(texts))
    keys = "".join(f"d{n}.s0.t0 play%{n % 2}\n" for n in range(10))
    (tmp_path / "x.gold.key.txt").write_text(keys)
    run(results.Probe, "probe", bilm, tmp_path / "x.data.xml", tmp_path / "x.json")


def test_neighbors(bilm, tmp_path):
    text = write_text(tmp_path / "x.txt")
    query = ["--query", "A ban.", "--word", "ban", "--layer", "all"]
    run(results.Neighbors, "neighbors", bilm, text, *query, tmp_path / "x.json")


def test_senses(bilm, tmp_path):
    text = "A play, or two."
    lines = [
        {"word": "play", "sense": sense, "text": text, "start": 2, "end": 6}
        for sense in ("theatre", "sport")
    ]
    srsly.write_jsonl(tmp_path / "x.jsonl", lines)
    run(results.Senses, "senses", bilm, tmp_path / "x.jsonl", tmp_path / "x.json")


@pytest.mark.slow
def test_compare(tmp_path):
    data = save_data(tmp_path)
    output = tmp_path / "output"
    options = {"variants": ["baseline", "both"], "seeds": [0], "shares": [1.0]}
    test = {"paths.test": str(data / "test.spacy")}
    compare(data, output, options, **test)
    check_form(srsly.read_json(output / "compare.json"), results.ComparisonResult)
    check_form(srsly.read_json(output / "speed.json"), results.Speeds)
    runs = list(output.glob("runs/*.json"))
    assert len(runs) == 2
    for path in runs:
        check_form(srsly.read_json(path), results.RunResult)


def test_labels_of_scores():
    assert results.metric_label("dep_las") == "Labelled dependencies (LAS)"
    assert results.metric_label("spans_sc_f") == "Span F-score (sc)"
    assert results.metric_label("spans_my_key_f") == "Span F-score (my_key)"
    assert results.metric_label("cats_score") == "cats_score"


def test_halves_of_characters_come_back(tmp_path):
    title = "눈 caf\udce9.txt"  # the name of a file that is not in UTF-8
    result = results.Perplexity(title=title, forward=1.0, backward=1.0, mean=1.0)
    results.write_result(tmp_path / "a.json", result)
    text = (tmp_path / "a.json").read_text("utf-8")
    assert "눈" in text and json.loads(text)["title"] == title
