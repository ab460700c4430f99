"""Test which files of a folder are shown, and which are skipped."""

import json

import pytest
from helpers import report_samples as samples
from helpers.html_tree import parse
from helpers.report_pages import WRITERS, make_report, printed, run_report

from spacy_elmo.report.load import load_results

pytestmark = pytest.mark.usefixtures("no_vega")


def test_files_are_read_in_the_order_of_their_paths(tmp_path):
    for name in ("b/2", "a", "c/1", "b/10", "B"):
        samples.write(tmp_path / f"{name}.json", {**samples.probe(), "title": name})
    names = [found.name for found in load_results(tmp_path).probe]
    assert names == ["B", "a", "b/10", "b/2", "c/1"]


def test_folders_may_be_nested_deeply(tmp_path, deep_folder):
    WRITERS["probe"](deep_folder)
    (found,) = load_results(tmp_path).probe
    assert found.file.count("/") == 1100


BROKEN = {
    "half.json": '{"kind": "probe", "tas',
    "list.json": "[1, 2]",
    "other.json": '{"kind": "something", "x": 1}',
    "foreign.json": '{"scores": {"tag_acc": 0.5}}',
    "wrong.json": '{"kind": "probe", "tasks": [{"task": "pos", "rows": 3}]}',
    "empty.json": '{"kind": "neighbors", "queries": []}',
    "nothing.json": '{"tag_acc": 0.5}',
    "slow.json": '{"tag_acc": 0.5, "speed": "slow"}',
    "binary.json": "\x00\x01",
    "place.json": '{"kind": "neighbors", "queries": [{"word": "a", "sentence": "a",'
    ' "position": 1, "layers": []}]}',
    "text.json": '{"forward": "low", "backward": 2, "mean": 3}',
}


def test_foreign_and_broken_files_are_skipped_by_name(tmp_path):
    good = WRITERS["probe"](tmp_path)
    expected = make_report(tmp_path).text
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "log.jsonl").write_text("no rows\n")
    done = run_report(tmp_path, "--output", tmp_path / "out" / "page.html")
    assert done.exit_code == 0
    for name in [*BROKEN, "sub/log.jsonl"]:
        assert f"Skipped {name}: " in printed(done), name
    assert good.name + ":" not in printed(done)
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert parse(page).text == expected


@pytest.mark.parametrize("change", ["points", "span", "layers"])
def test_senses_that_do_not_fit_together_are_skipped(change, tmp_path):
    data = samples.senses("en")
    word = data["words"][1]
    if change == "points":
        word["layers"][0]["points"].pop()
    elif change == "layers":
        word["layers"].pop()
    else:
        word["occurrences"][2]["end"] = 1000
    samples.write(tmp_path / "s.json", data)
    (reason,) = load_results(tmp_path).skipped
    assert reason.startswith("s.json: words") or "same layers" in reason


def test_json_of_models_and_corpora_is_no_result(tmp_path):
    WRITERS["perplexity"](tmp_path)
    for folder, name in (
        ("bilm/model-best", "weights.safetensors"),
        ("pipeline", "meta.json"),
        ("index", "index.json"),
        ("corpus", "corpus.json"),
        (".hidden", "x.txt"),
    ):
        (tmp_path / folder / "deeper").mkdir(parents=True)
        (tmp_path / folder / name).write_text("{}")
        (tmp_path / folder / "config.json").write_text("{}")
        (tmp_path / folder / "deeper" / "x.json").write_text("{}")
    results = load_results(tmp_path)
    assert results.files == ["p.json"] and results.skipped == []
    assert results.passed_over == [
        ".hidden (hidden)",
        "bilm/model-best (a biLM)",
        "corpus (a corpus)",
        "index (an index)",
        "pipeline (a pipeline)",
    ]
    # Results that a user has put into such a folder are shown.
    WRITERS["probe"](tmp_path / "bilm" / "model-best" / "deeper")
    broken = tmp_path / "pipeline" / "wrong.json"
    broken.write_text(BROKEN["wrong.json"])
    results = load_results(tmp_path)
    assert results.files == ["bilm/model-best/deeper/p.json", "p.json"]
    assert [reason.split(":")[0] for reason in results.skipped] == [
        "pipeline/wrong.json"
    ]


def test_links_and_other_files_are_named(tmp_path):
    WRITERS["probe"](tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "back").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "lost.json").symlink_to(tmp_path / "nowhere")
    results = load_results(tmp_path)
    assert results.files == ["p.json"]
    assert results.passed_over == ["back (a link)", "1 .txt file"]
    (reason,) = results.skipped
    assert reason.startswith("lost.json: ")
    run_report(tmp_path)
    done = run_report(tmp_path)
    assert "No results in back (a link), 1 .html file, 1 .txt file" in printed(done)


@pytest.mark.parametrize("kind", [["probe"], {}, 1, None, "x"])
def test_json_of_another_kind_is_skipped(tmp_path, kind):
    WRITERS["perplexity"](tmp_path)
    samples.write(tmp_path / "x.json", {"kind": kind})
    results = load_results(tmp_path)
    assert results.files == ["p.json"]
    assert results.skipped == ["x.json: found no result of a `spacy elmo` command"]


# Files of comparisons


def test_only_the_table_of_a_comparison_is_shown(tmp_path):
    samples.write_comparison(tmp_path / "parsing")
    results = load_results(tmp_path)
    assert results.files == ["parsing/compare.json"]
    assert results.skipped == []
    assert results.passed_over == ["1 .log file"]


def test_other_folders_beside_those_of_a_comparison_are_read(tmp_path):
    samples.write_comparison(tmp_path)
    samples.write(tmp_path / "senses" / "en.json", samples.senses("en"))
    samples.write(tmp_path / "more" / "deeper" / "p.json", samples.perplexity(9))
    samples.write(tmp_path / "more" / "x.json", {"x": 1})
    results = load_results(tmp_path)
    assert results.files == ["compare.json", "more/deeper/p.json", "senses/en.json"]
    assert results.skipped == ["more/x.json: found no result of a `spacy elmo` command"]


def test_files_in_the_folders_of_a_comparison_that_are_not_its_own_are_named(tmp_path):
    samples.write_comparison(tmp_path)
    for name in ("runs/mine.json", "logs/x.json", "data/y.json", "models/z.json"):
        samples.write(tmp_path / name, {"scores": {}})
    samples.write(tmp_path / "runs" / "probe.json", samples.probe())
    samples.write(tmp_path / "sub" / "speed.json", {})
    (tmp_path / "models" / "other").mkdir()
    (tmp_path / "models" / "other" / "meta.json").write_text("{}")
    results = load_results(tmp_path)
    assert results.files == ["compare.json", "runs/probe.json"]
    names = [reason.split(":")[0] for reason in results.skipped]
    assert names == [
        "data/y.json",
        "logs/x.json",
        "models/z.json",
        "runs/mine.json",
        "sub/speed.json",
    ]
    assert "models/other (a pipeline)" in results.passed_over


def test_log_of_a_run_that_was_killed(tmp_path):
    log = samples.write_log(tmp_path / "log.jsonl")
    whole = load_results(tmp_path).logs[0].data
    log.write_text(log.read_text() + '{"type": "step", "wor')
    results = load_results(tmp_path)
    assert results.logs[0].data == whole and results.skipped == []


@pytest.mark.parametrize("name", ["words", "n_tokens", "step"])
def test_rows_with_huge_counts_are_skipped(tmp_path, name):
    log = samples.write_log(tmp_path / "log.jsonl")
    whole = load_results(tmp_path).logs[0].data
    rows = [json.loads(line) for line in log.open()]
    for kind in ("step", "evaluation"):
        row = next(row for row in rows if row["type"] == kind)
        with log.open("a") as file:
            file.write(json.dumps({**row, name: 10**400}) + "\n")
    results = load_results(tmp_path)
    assert results.logs[0].data == whole and results.skipped == []


def test_the_best_evaluation_is_a_number(tmp_path):
    samples.write_log(tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").open()]
    (first, *_, last) = (row for row in rows if row["type"] == "evaluation")
    diverged = json.dumps({**first, "mean": float("nan")})
    (tmp_path / "log.jsonl").write_text(f"{diverged}\n{json.dumps(last)}\n")
    best = load_results(tmp_path).logs[0].data.best
    assert best.mean == last["mean"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1e999", "1e308", "9" * 400])
def test_numbers_that_no_chart_can_show_are_skipped(tmp_path, number):
    samples.write(tmp_path / "good.json", samples.perplexity(50.0))
    text = json.dumps(samples.perplexity(12345.0)).replace("12345.0", number, 1)
    (tmp_path / "bad.json").write_text(text)
    results = load_results(tmp_path)
    assert results.files == ["good.json"]
    (reason,) = results.skipped
    assert reason.startswith("bad.json: found NaN or a number beyond 1e100")
