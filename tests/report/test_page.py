"""Test the whole page: it needs no other files, escapes texts, and describes charts."""

import json
import re
import shutil
import sys

import pytest
from helpers import report_samples as samples
from helpers.full_disk import full_disk
from helpers.report_pages import (
    WRITERS,
    find_charts,
    find_section,
    make_report,
    printed,
    read_cells,
    run_report,
)

from spacy_elmo.report import write_report

pytestmark = pytest.mark.usefixtures("no_vega")


def test_page_stands_alone_and_describes_each_chart(tmp_path):
    root = make_report(samples.write_all(tmp_path))
    for element in root.find():
        for name in ("src", "href", "srcset", "action", "data"):
            value = element.attrs.get(name, "#")
            assert value.startswith("#") or value == "data:,", (element.name, value)
    ids = [element.attrs["id"] for element in root.find() if "id" in element.attrs]
    assert len(ids) == len(set(ids))
    links = [link.attrs["href"][1:] for link in root.find("a")]
    assert set(links) == {*WRITERS, "content"} and set(links) <= set(ids)
    charts = {chart.attrs["id"]: chart for chart in root.find("div", role="img")}
    assert list(charts) == list(find_charts(root))
    for chart in charts.values():
        assert len(chart.attrs["aria-label"]) > 20
        (table,) = chart.parent.find("table")
        assert len(read_cells(table)) > 1
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


@pytest.mark.slow
def test_a_page_is_whole_or_not_there(tmp_path):
    folder = samples.write_all(tmp_path / "results")
    page = folder / "report.html"
    for n_bytes in (0, 5000):
        with full_disk(n_bytes):
            done = run_report(folder)
        assert done.exit_code == 1 and "Traceback" not in done.output
        sentence = "report.html: cannot be written because the disk is full; make room"
        assert sentence in printed(done)
        assert not list(folder.glob("report*"))
    assert run_report(folder).exit_code == 0
    whole = page.read_bytes()
    with full_disk(5000):
        run_report(folder)
    assert page.read_bytes() == whole


@pytest.mark.parametrize("kind", WRITERS)
def test_sections_without_results_name_their_command(kind, tmp_path):
    WRITERS[kind](tmp_path)
    root = make_report(tmp_path)
    shown = [each.attrs["id"] for each in root.find("section") if "id" in each.attrs]
    # The log of a pretraining also has perplexities, so it fills two sections.
    expected = {kind, "perplexity"} if kind == "pretraining" else {kind}
    assert set(shown) == expected
    (commands,) = root.find("dl", **{"class": "commands"})
    assert len(commands.find("code")) == len(WRITERS) - len(expected)
    named = " ".join(code.text for code in commands.find("code"))
    words = {"pretraining": "elmo pretrain", "perplexity": "elmo evaluate"}
    words["scores"] = "spacy evaluate"
    for other in WRITERS:
        assert (words.get(other, f" {other}") in named) == (other not in expected)


def test_text_is_escaped_and_charts_hold_it_as_it_is(tmp_path):
    evil = "</script><script>bad()</script> <!-- & \"'<b>눈</b>"
    data = samples.senses("en")
    word = data["words"][0]
    word["word"] = data["title"] = evil
    word["occurrences"][0].update(text=evil, start=0, end=len(evil), sense=evil)
    samples.write(tmp_path / "s.json", data)
    root = make_report(tmp_path)
    assert len(root.find("script")) == 3 and not root.find("b")
    spec = find_charts(root)["chart-1"]
    row = spec["data"]["values"][0]
    assert row["word"] == row["series"] == evil and row["before"] == row["after"] == ""
    assert evil in [e.text for e in find_section(root, "senses").find("mark")]
    assert evil in [e.text for e in root.find("h3")]


def test_names_that_are_not_unicode_are_shown(tmp_path):
    half = "caf\udce9"
    try:
        (tmp_path / f"{half}.txt").touch()
    except OSError:
        pytest.skip("this file system has only names in Unicode")
    samples.write(tmp_path / f"{half}.json", samples.perplexity(9))
    (tmp_path / half).mkdir()
    samples.write(tmp_path / half / "x.json", {})
    data = {**samples.perplexity(8), "title": "\ud800 mine"}
    (tmp_path / "a.json").write_text(json.dumps(data))
    done = run_report(tmp_path)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "caf?" in page and "? mine" in page


def test_korean_is_marked_as_such(tmp_path):
    root = make_report(samples.write_all(tmp_path))
    found = 0
    for element in root.find():
        own = "".join(part for part in element.parts if isinstance(part, str))
        if re.search("[가-힣]", own) and element.name not in ("script", "style"):
            assert element.lang() == "ko", own
            found += 1
    assert found > 50
    sentence = next(e for e in root.find("span") if "barges" in e.text)
    assert sentence.lang() == "en"


def test_title_says_what_it_is_about_and_gains_come_first(tmp_path):
    root = make_report(samples.write_all(tmp_path / "en"))
    (title,) = root.find("h1")
    assert title.text == "spaCy with and without ELMo: en"
    (keys,) = root.find("dl", **{"class": "keys"})
    headings = [each.text for each in keys.find("dt")]
    assert headings[0] == "Fewer errors than without ELMo"
    sections = [each.attrs.get("id") for each in root.find("section")]
    assert next(filter(None, sections)) == "compare"


def test_summary_of_many_files_is_short(tmp_path):
    for number in range(4):
        title = {"title": f"Treebank {number}"}
        samples.write(tmp_path / f"{number}.json", {**samples.compare(), **title})
    (keys,) = make_report(tmp_path).find("dl", **{"class": "keys"})
    assert "Treebank 1" in keys.text and "Treebank 2" not in keys.text
    assert "and 2 more below" in keys.text


def test_summary_names_the_best_results(tmp_path):
    root = make_report(samples.write_all(tmp_path))
    (keys,) = root.find("dl", **{"class": "keys"})
    text = keys.text
    assert "212.4 forward 213.9, backward 210.9" in text
    assert "layer 1 pos: accuracy 93.7 %; most frequent tag: 86.1 %" in text
    assert "layer 2 senses: accuracy 61.1 %" in text
    assert "Entity F-score Sample treebank: ELMo at input and output" in text
    assert "88 % Korean words, layer 2; most frequent sense: 42 %" in text


def test_folder_without_results_exits_with_a_sentence(tmp_path):
    done = run_report(tmp_path / "nowhere")
    assert done.exit_code == 1 and "nowhere: no such folder" in printed(done)
    (tmp_path / "x.json").write_text("{}")
    done = run_report(tmp_path)
    assert done.exit_code == 1 and "found no results" in printed(done)
    assert "x.json" in printed(done) and "Traceback" not in done.output
    assert not (tmp_path / "report.html").exists()


def test_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.undo()  # restores the real load_vega
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    WRITERS["probe"](tmp_path)
    done = run_report(tmp_path)
    assert done.exit_code == 1
    assert "pip install 'spacy-elmo[report]'" in printed(done)


def test_page_that_cannot_be_written_exits_with_a_sentence(tmp_path):
    WRITERS["probe"](tmp_path)
    done = run_report(tmp_path, "--output", tmp_path)
    assert done.exit_code == 1 and "Traceback" not in done.output
