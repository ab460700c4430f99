import json
import math
import re
import shutil
import sys

import numpy as np
import pytest
from helpers import report_samples as samples
from helpers.html_tree import parse
from typer.testing import CliRunner

import spacy_elmo.report
from spacy_elmo.cli import app
from spacy_elmo.report import write_report
from spacy_elmo.report.charts import LETTERS, in_lines
from spacy_elmo.report.load import find_results
from spacy_elmo.report.training import MAX_POINTS, thin
from spacy_elmo.report.words import scaled
from spacy_elmo.report.xy_charts import round_numbers

NINE = samples.perplexity(9)
KINDS = {
    "pretraining": lambda folder: samples.write_log(folder / "log.jsonl"),
    "perplexity": lambda folder: samples.write(
        folder / "p.json", samples.perplexity(9)
    ),
    "probe": lambda folder: samples.write(folder / "p.json", samples.probe()),
    "compare": lambda folder: samples.write(folder / "c.json", samples.compare()),
    "senses": lambda folder: samples.write(folder / "s.json", samples.senses("ko")),
    "neighbors": lambda folder: samples.write(folder / "n.json", samples.neighbors()),
}


@pytest.fixture(autouse=True)
def no_bundle(monkeypatch):
    """Making the real one takes seconds, and only a browser needs it."""
    monkeypatch.setattr(spacy_elmo.report, "load_bundle", lambda: "'<!--</script>'")


def read(folder):
    write_report(folder, folder / "report.html")
    return parse((folder / "report.html").read_text(encoding="utf-8"))


def call(*args):
    return CliRunner().invoke(app, ["report", *map(str, args)])


def said(done):
    return " ".join(done.output.split())


def specs(root):
    (script,) = root.find("script", id="charts")
    return json.loads("".join(script.parts))["specs"]


def cells(table):
    rows = [row.find("th") + row.find("td") for row in table.find("tr")]
    return [[as_lines(cell) for cell in row] for row in rows]


def as_lines(cell):
    small = [part.text for part in cell.find("small")]
    return "\n".join([cell.text.removesuffix("".join(small)), *small])


def section(root, name):
    (found,) = root.find("section", id=name)
    return found


# The page


def test_page_stands_alone_and_describes_each_chart(tmp_path):
    root = read(samples.write_all(tmp_path))
    for element in root.find():
        for name in ("src", "href", "srcset", "action", "data"):
            value = element.attrs.get(name, "#")
            assert value.startswith("#") or value == "data:,", (element.name, value)
    ids = [element.attrs["id"] for element in root.find() if "id" in element.attrs]
    assert len(ids) == len(set(ids))
    links = [link.attrs["href"][1:] for link in root.find("a")]
    assert set(links) == {*KINDS, "content"} and set(links) <= set(ids)
    charts = {chart.attrs["id"]: chart for chart in root.find("div", role="img")}
    assert list(charts) == list(specs(root))
    for chart in charts.values():
        assert len(chart.attrs["aria-label"]) > 20
        (table,) = chart.parent.find("table")
        assert len(cells(table)) > 1
    for label in root.find("table"):
        assert label.find("caption")[0].text
    headings = [int(e.name[1]) for e in root.find() if re.fullmatch("h[1-6]", e.name)]
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(headings, headings[1:]))


def test_same_results_give_the_same_bytes(tmp_path):
    folder = samples.write_all(tmp_path / "results")
    write_report(folder, tmp_path / "1.html")
    other = shutil.copytree(folder, tmp_path / "elsewhere" / "results")
    write_report(other, tmp_path / "2.html")
    first, second = ((tmp_path / name).read_bytes() for name in ("1.html", "2.html"))
    assert first == second
    assert str(tmp_path).encode() not in first and b"\r" not in first
    assert b"/home" not in first and b"run/model-best" in first


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_left_out_with_the_way_to_make_it(kind, tmp_path):
    KINDS[kind](tmp_path)
    root = read(tmp_path)
    shown = [each.attrs["id"] for each in root.find("section") if "id" in each.attrs]
    # The log of a pretraining has perplexities too.
    expected = {kind, "perplexity"} if kind == "pretraining" else {kind}
    assert set(shown) == expected
    (commands,) = root.find("dl", **{"class": "commands"})
    assert len(commands.find("code")) == len(KINDS) - len(expected)
    named = " ".join(code.text for code in commands.find("code"))
    words = {"pretraining": "elmo pretrain", "perplexity": "elmo evaluate"}
    for other in KINDS:
        assert (words.get(other, f" {other}") in named) == (other not in expected)


def test_text_is_escaped_and_charts_hold_it_as_it_is(tmp_path):
    evil = "</script><script>bad()</script> <!-- & \"'<b>눈</b>"
    data = samples.senses("en")
    word = data["words"][0]
    word["word"] = data["title"] = evil
    word["occurrences"][0].update(text=evil, start=0, end=len(evil), sense=evil)
    samples.write(tmp_path / "s.json", data)
    root = read(tmp_path)
    assert len(root.find("script")) == 3 and not root.find("b")
    spec = specs(root)["chart-1"]
    row = spec["data"]["values"][0]
    assert row["word"] == row["series"] == evil and row["before"] == row["after"] == ""
    assert evil in [e.text for e in section(root, "senses").find("mark")]
    assert evil in [e.text for e in root.find("h3")]


def test_korean_is_marked_as_such(tmp_path):
    root = read(samples.write_all(tmp_path))
    found = 0
    for element in root.find():
        own = "".join(part for part in element.parts if isinstance(part, str))
        if re.search("[가-힣]", own) and element.name not in ("script", "style"):
            assert element.lang() == "ko", own
            found += 1
    assert found > 50
    sentence = next(e for e in root.find("span") if "barges" in e.text)
    assert sentence.lang() == "en"


# The numbers


def test_comparison_table_has_the_numbers_of_the_file(tmp_path):
    KINDS["compare"](tmp_path)
    rows = cells(section(read(tmp_path), "compare").find("table")[0])
    full = [v for v in samples.compare()["variants"] if v["share"] == 1.0]
    assert len(rows) == 1 + len(full)
    for row, variant in zip(rows[1:], full):
        assert row[0] == variant["label"] and len(row) == len(rows[0])
        for place, metric in enumerate(("tag_acc", "dep_las", "ents_f")):
            score, *below = row[1 + place].split("\n")
            mean, spread = map(float, score.split(" ± "))
            values = np.array(variant["scores"][metric]["values"])
            assert abs(mean - 100 * values.mean()) < 0.006
            assert abs(spread - 100 * values.std()) < 0.006
            reduced = variant["error_reduction"][metric]
            if reduced is None:
                assert below == []
            else:
                percent, _, word = below[0].split()
                assert abs(float(percent) - 100 * reduced) < 0.06
                assert word == "fewer"
        assert row[-1] == f"{variant['words_per_second']:,}"


def test_more_errors_than_the_baseline_are_shown_as_such(tmp_path):
    data = samples.compare()
    data["variants"][-1]["error_reduction"].update(tag_acc=-0.123, dep_las=-0.0001)
    samples.write(tmp_path / "c.json", data)
    rows = cells(section(read(tmp_path), "compare").find("table")[0])
    assert rows[-1][1].endswith("\n12.3 % more")
    assert rows[-1][2].endswith("\n0.0 % more")


def test_scores_on_test_data_have_a_table_of_their_own(tmp_path):
    data = samples.compare()
    for variant in data["variants"]:
        variant["test_scores"] = {
            metric: {"mean": score["mean"] / 2, "spread": None, "values": []}
            for metric, score in variant["scores"].items()
        }
        variant["test_error_reduction"] = {"tag_acc": 0.5, "dep_las": None}
    samples.write(tmp_path / "c.json", data)
    root = read(tmp_path)
    dev, test = map(cells, section(root, "compare").find("table")[:2])
    assert dev[0] == test[0] and [row[0] for row in dev] == [row[0] for row in test]
    for row, other in zip(dev[1:], test[1:]):
        score, below = other[1].split("\n")
        assert float(score) == pytest.approx(float(row[1].split()[0]) / 2, abs=0.01)
        assert below == "50.0 % fewer" and "\n" not in other[2]
    (keys,) = root.find("dl", **{"class": "keys"})
    assert "50 % Tags Sample treebank: ELMo at input and output" in keys.text


@pytest.mark.parametrize("name", ["", "x", "ELMo, learned mix, lambda 0.001", "a" * 99])
def test_names_are_cut_into_lines_of_about_the_same_length(name):
    lines = in_lines(name)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, lines)) <= LETTERS
    if name.startswith("ELMo"):
        assert lines == ["ELMo, learned", "mix, lambda 0.001"]


def test_learned_shares_fill_each_bar(tmp_path):
    KINDS["compare"](tmp_path)
    root = read(tmp_path)
    mixes = [
        mix
        for variant in samples.compare()["variants"]
        if variant["share"] == 1.0
        for mix in variant["mixes"]
    ]
    parts = [
        row
        for spec in specs(root).values()
        for row in spec["data"]["values"]
        if "start" in row
    ]
    assert [row["value"] for row in parts] == pytest.approx(
        [share for mix in mixes for share in mix["s"]], rel=1e-5
    )
    for row, following in zip(parts, parts[1:]):
        if following["rest"]:
            assert following["start"] == row["end"]
        else:
            assert row["end"] == pytest.approx(1.0)


def test_summary_tells_the_best(tmp_path):
    root = read(samples.write_all(tmp_path))
    (keys,) = root.find("dl", **{"class": "keys"})
    text = keys.text
    assert "212.4 forward 213.9, backward 210.9" in text
    assert "layer 1 pos: 93.7 % right; most frequent tag: 86.1 %" in text
    assert "layer 2 senses: 61.1 % right" in text
    assert "Entities F Sample treebank: ELMo at input and output" in text
    assert "88 % Korean words, layer 2; most frequent sense 42 %" in text


def test_perplexities_are_those_of_the_text_and_of_the_best_evaluation(tmp_path):
    log = samples.write_log(tmp_path / "run" / "log.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    best = min(row["mean"] for row in rows if row["type"] == "evaluation")
    samples.write(tmp_path / "dev.json", {"kind": "perplexity", **NINE})
    table = cells(section(read(tmp_path), "perplexity").find("table")[0])
    assert [row[0] for row in table[1:]] == ["run", "dev"]
    assert float(table[1][4]) == pytest.approx(best, abs=0.06)
    assert table[2][2:] == ["10.5", "7.5", "9.0", "18,950", "4.7 %"]


def test_neighbours_are_marked_where_they_are(tmp_path):
    data = samples.neighbors()
    near = data["queries"][0]["layers"][0]["neighbors"][0]
    # The word is there twice, and a no-break space parts no tokens.
    near.update(sentence="a play\u00a0b c play d", word="play", position=3)
    samples.write(tmp_path / "n.json", data)
    found = section(read(tmp_path), "neighbors").find("table")[0].find("th")
    (sentence,) = [cell for cell in found if cell.find("mark")][0].find("span")
    assert sentence.text == "a play b c play d"
    assert sentence.parts[0] == "a play\u00a0b c " and sentence.find("mark")[
        0
    ].text == ("play")


def test_long_sentences_are_cut_around_the_word(tmp_path):
    data = samples.neighbors()
    words = [f"w{k}" for k in range(200)]
    data["queries"][0].update(sentence=words, word="w100", position=100)
    samples.write(tmp_path / "n.json", data)
    heading = section(read(tmp_path), "neighbors").find("h4")[0].text
    assert heading.startswith("… w85 ") and heading.endswith(" w115 …")
    assert "w100" in heading


@pytest.mark.parametrize("stretch", [(5, 1), (1, 5)])
def test_map_keeps_its_shape(stretch):
    points = np.random.default_rng(0).normal(3, stretch, (20, 2))
    found = np.array(scaled(points.tolist()))
    assert np.abs(found).max() == 1

    def distances(array):
        return np.linalg.norm(array[:, None] - array[None], axis=-1)

    ratio = distances(found)[0, 1] / distances(points)[0, 1]
    np.testing.assert_allclose(distances(found), ratio * distances(points), atol=0.01)
    assert scaled([[2, 3], [2, 3]]) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("n", [1, MAX_POINTS, MAX_POINTS + 1, 5 * MAX_POINTS + 3])
def test_long_logs_are_thinned_and_nothing_is_lost(n, tmp_path):
    parts = thin(range(n))
    assert [row for part in parts for row in part] == list(range(n))
    sizes = {len(part) for part in parts}
    assert len(parts) <= MAX_POINTS and max(sizes) - min(sizes) <= 1
    samples.write_log(tmp_path / "log.jsonl", n)
    steps = [s for s in specs(read(tmp_path)).values() if "backward" in str(s)][-1]
    rows = steps["data"]["values"]
    assert len(rows) == len(parts) and rows[-1]["words"] == 12800 * n


def test_diverged_training_is_shown(tmp_path):
    log = samples.write_log(tmp_path / "log.jsonl")
    text = re.sub(r'"forward(_loss)?": [\d.]+', r'"forward\1": NaN', log.read_text())
    log.write_text(text)
    rows = specs(read(tmp_path))["chart-2"]["data"]["values"]
    assert rows[3]["forward"] is None and rows[3]["backward"] > 0


@pytest.mark.parametrize("low, high", [(0.5, 3), (66, 400), (1, 1e6)])
def test_round_numbers_lie_between(low, high):
    found = round_numbers(low, high)
    assert all(low <= number <= high for number in found)
    digits = {f"{number:e}"[0] for number in found}
    assert digits <= {"1", "2", "5"} and len(found) >= math.log10(high / low) * 2


# Files


def test_files_are_read_in_the_order_of_their_paths(tmp_path):
    for name in ("b/2", "a", "c/1", "b/10", "B"):
        samples.write(tmp_path / f"{name}.json", {**samples.probe(), "title": name})
    names = [found.name for found in find_results(tmp_path).probe]
    assert names == ["B", "a", "b/10", "b/2", "c/1"]


BROKEN = {
    "half.json": '{"kind": "probe", "tas',
    "list.json": "[1, 2]",
    "other.json": '{"kind": "something", "x": 1}',
    "foreign.json": '{"scores": {"tag_acc": 0.5}}',
    "wrong.json": '{"kind": "probe", "tasks": [{"task": "pos", "rows": 3}]}',
    "empty.json": '{"kind": "neighbors", "queries": []}',
    "binary.json": "\x00\x01",
    "place.json": '{"kind": "neighbors", "queries": [{"word": "a", "sentence": "a",'
    ' "position": 1, "layers": []}]}',
    "text.json": '{"forward": "low", "backward": 2, "mean": 3}',
}


def test_foreign_and_broken_files_are_skipped_by_name(tmp_path):
    good = KINDS["probe"](tmp_path)
    expected = read(tmp_path).text
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "log.jsonl").write_text("no rows\n")
    done = call(tmp_path, "--output", tmp_path / "out" / "page.html")
    assert done.exit_code == 0
    for name in [*BROKEN, "sub/log.jsonl"]:
        assert f"Skipped {name}: " in said(done), name
    assert good.name + ":" not in said(done)
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
    (reason,) = find_results(tmp_path).skipped
    assert reason.startswith("s.json: words") or "same layers" in reason


def test_json_of_models_and_corpora_is_no_result(tmp_path):
    KINDS["perplexity"](tmp_path)
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
    results = find_results(tmp_path)
    assert results.files == ["p.json"] and results.skipped == []


@pytest.mark.parametrize("kind", [["probe"], {}, 1, None, "x"])
def test_json_of_another_kind_is_skipped(tmp_path, kind):
    KINDS["perplexity"](tmp_path)
    samples.write(tmp_path / "x.json", {"kind": kind})
    results = find_results(tmp_path)
    assert results.files == ["p.json"]
    assert results.skipped == ["x.json: found no result of a command of ours"]


def test_only_the_table_of_a_comparison_counts(tmp_path):
    folder = tmp_path / "parsing"
    samples.write(folder / "compare.json", samples.compare())
    samples.write(folder / "runs" / "baseline-0.json", {"scores": {}})
    samples.write(folder / "speed.json", {"baseline-0": 1})
    samples.write(folder / "logs" / "x.json", {})
    results = find_results(tmp_path)
    assert results.files == ["parsing/compare.json"] and results.skipped == []


def test_log_of_a_run_that_was_killed(tmp_path):
    log = samples.write_log(tmp_path / "log.jsonl")
    whole = find_results(tmp_path).logs[0].data
    log.write_text(log.read_text() + '{"type": "step", "wor')
    results = find_results(tmp_path)
    assert results.logs[0].data == whole and results.skipped == []


# Errors


def test_folder_without_results_exits_with_a_sentence(tmp_path):
    done = call(tmp_path / "nowhere")
    assert done.exit_code == 1 and "nowhere: no such folder" in said(done)
    (tmp_path / "x.json").write_text("{}")
    done = call(tmp_path)
    assert done.exit_code == 1 and "found no results" in said(done)
    assert "x.json" in said(done) and "Traceback" not in done.output
    assert not (tmp_path / "report.html").exists()


def test_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.undo()  # the real load_bundle
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    KINDS["probe"](tmp_path)
    done = call(tmp_path)
    assert done.exit_code == 1
    assert "pip install 'spacy-elmo[report]'" in said(done)


def test_page_that_cannot_be_written_exits_with_a_sentence(tmp_path):
    KINDS["probe"](tmp_path)
    done = call(tmp_path, "--output", tmp_path)
    assert done.exit_code == 1 and "Traceback" not in done.output
