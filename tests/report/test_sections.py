"""Test that the tables and charts of the sections show the numbers of the files."""

import json
import re

import numpy as np
import pytest
from helpers import report_samples as samples
from helpers.report_pages import (
    WRITERS,
    find_charts,
    find_section,
    make_report,
    read_cells,
)

from spacy_elmo.report.sections.pretraining_section import MAX_POINTS, split_evenly
from spacy_elmo.report.sections.scores_section import explain_metric
from spacy_elmo.report.sections.senses_section import scale_points
from spacy_elmo.results import METRICS

pytestmark = pytest.mark.usefixtures("no_vega")
NINE = samples.perplexity(9)


def test_comparison_table_has_the_numbers_of_the_file(tmp_path):
    WRITERS["compare"](tmp_path)
    rows = read_cells(find_section(make_report(tmp_path), "compare").find("table")[0])
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
                percent, rest = below[0].split(" ", 1)
                assert abs(float(percent) - 100 * reduced) < 0.06
                assert rest == "% fewer errors"
        assert row[-1] == f"{variant['words_per_second']:,}"


def test_more_errors_than_the_baseline_are_shown_as_such(tmp_path):
    data = samples.compare()
    data["variants"][-1]["error_reduction"].update(tag_acc=-0.123, dep_las=-0.0001)
    samples.write(tmp_path / "c.json", data)
    rows = read_cells(find_section(make_report(tmp_path), "compare").find("table")[0])
    assert rows[-1][1].endswith("\n12.3 % more errors")
    assert rows[-1][2].endswith("\n0.0 % more errors")


def test_scores_on_test_data_have_a_table_of_their_own(tmp_path):
    data = samples.compare()
    for variant in data["variants"]:
        variant["test_scores"] = {
            metric: {"mean": score["mean"] / 2, "spread": None, "values": []}
            for metric, score in variant["scores"].items()
        }
        variant["test_error_reduction"] = {"tag_acc": 0.5, "dep_las": None}
    samples.write(tmp_path / "c.json", data)
    root = make_report(tmp_path)
    dev, test = map(read_cells, find_section(root, "compare").find("table")[:2])
    assert dev[0] == test[0] and [row[0] for row in dev] == [row[0] for row in test]
    for row, other in zip(dev[1:], test[1:]):
        score, below = other[1].split("\n")
        assert float(score) == pytest.approx(float(row[1].split()[0]) / 2, abs=0.01)
        assert below == "50.0 % fewer errors" and "\n" not in other[2]
    (keys,) = root.find("dl", **{"class": "keys"})
    assert "50 % Tag accuracy Sample treebank: ELMo at input and output" in keys.text


def test_learned_shares_fill_each_bar(tmp_path):
    WRITERS["compare"](tmp_path)
    root = make_report(tmp_path)
    mixes = [
        mix
        for variant in samples.compare()["variants"]
        if variant["share"] == 1.0
        for mix in variant["mixes"]
    ]
    parts = [
        row
        for spec in find_charts(root).values()
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


def test_scores_of_trained_pipelines_are_explained(tmp_path):
    samples.write(tmp_path / "parser" / "metrics.json", samples.scores())
    cats = {"cats_macro_f": 0.5, "spans_my_key_f": 1.0, "speed": 7500.0}
    samples.write(tmp_path / "z" / "test.json", {**cats, "cats_score_desc": "macro F"})
    root = make_report(tmp_path)
    head, *rows = read_cells(find_section(root, "scores").find("table")[0])
    assert head == ["pipeline", "score", "what it counts", "result"]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("parser", "Tag accuracy", "93.7 %"),
        ("parser", "Labelled dependencies (LAS)", "78.5 %"),
        ("parser", "Speed", "9,120"),
        ("z/test", "Category F-score", "50.0 %"),
        ("z/test", "Span F-score (my_key)", "100.0 %"),
        ("z/test", "Speed", "7,500"),
    ]
    assert rows[0][2] == "words with the right tag"
    assert len({row[2] for row in rows}) == len(rows) - 1
    (title,) = root.find("h1")
    assert title.text.startswith("spaCy with ELMo: ")
    (keys,) = root.find("dl", **{"class": "keys"})
    assert "93.7 % Tag accuracy 78.5 % Labelled dependencies (LAS) parser" in keys.text


def test_every_score_that_is_shown_is_explained():
    for pattern in METRICS:
        assert explain_metric(pattern.replace("(.+)", "sc")), pattern


def test_perplexities_are_those_of_the_text_and_of_the_best_evaluation(tmp_path):
    log = samples.write_log(tmp_path / "run" / "log.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    best = min(row["mean"] for row in rows if row["type"] == "evaluation")
    samples.write(tmp_path / "dev.json", {"kind": "perplexity", **NINE})
    table = read_cells(
        find_section(make_report(tmp_path), "perplexity").find("table")[0]
    )
    assert [row[0] for row in table[1:]] == ["run", "dev"]
    assert float(table[1][4]) == pytest.approx(best, abs=0.06)
    assert table[2][2:] == ["10.5", "7.5", "9.0", "18,950", "4.7 %"]


def test_neighbours_are_marked_where_they_are(tmp_path):
    data = samples.neighbors()
    near = data["queries"][0]["layers"][0]["neighbors"][0]
    # "play" occurs twice, and a no-break space does not separate tokens.
    near.update(sentence="a play\u00a0b c play d", word="play", position=3)
    samples.write(tmp_path / "n.json", data)
    found = find_section(make_report(tmp_path), "neighbors").find("table")[0].find("th")
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
    heading = find_section(make_report(tmp_path), "neighbors").find("h4")[0].text
    assert heading.startswith("… w85 ") and heading.endswith(" w115 …")
    assert "w100" in heading


@pytest.mark.parametrize("stretch", [(5, 1), (1, 5)])
def test_map_keeps_its_shape(stretch):
    points = np.random.default_rng(0).normal(3, stretch, (20, 2))
    found = np.array(scale_points(points.tolist()))
    assert np.abs(found).max() == 1

    def distances(array):
        return np.linalg.norm(array[:, None] - array[None], axis=-1)

    ratio = distances(found)[0, 1] / distances(points)[0, 1]
    np.testing.assert_allclose(distances(found), ratio * distances(points), atol=0.01)
    assert scale_points([[2, 3], [2, 3]]) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("n", [1, MAX_POINTS, MAX_POINTS + 1, 5 * MAX_POINTS + 3])
def test_long_logs_are_thinned_and_nothing_is_lost(n, tmp_path):
    parts = split_evenly(range(n))
    assert [row for part in parts for row in part] == list(range(n))
    sizes = {len(part) for part in parts}
    assert len(parts) <= MAX_POINTS and max(sizes) - min(sizes) <= 1
    samples.write_log(tmp_path / "log.jsonl", n)
    steps = [
        s for s in find_charts(make_report(tmp_path)).values() if "backward" in str(s)
    ][-1]
    rows = steps["data"]["values"]
    assert len(rows) == len(parts) and rows[-1]["words"] == 12800 * n


def test_perplexities_that_are_not_positive_are_shown(tmp_path):
    log = samples.write_log(tmp_path / "log.jsonl")
    log.write_text(re.sub(r'"mean": [\d.]+', '"mean": -3.0', log.read_text(), count=1))
    rows = find_charts(make_report(tmp_path))["chart-1"]["data"]["values"]
    assert rows[0]["mean"] == -3.0


def test_diverged_training_is_shown(tmp_path):
    log = samples.write_log(tmp_path / "log.jsonl")
    text = re.sub(r'"forward(_loss)?": [\d.]+', r'"forward\1": NaN', log.read_text())
    log.write_text(text)
    rows = find_charts(make_report(tmp_path))["chart-2"]["data"]["values"]
    assert rows[3]["forward"] is None and rows[3]["backward"] > 0
