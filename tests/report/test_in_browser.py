"""Test the page in a real browser, if one is installed."""

import json
import re

import pytest
from helpers import report_samples as samples
from helpers.browser import Visit, open_browser
from helpers.html_tree import parse

from spacy_elmo.report import write_report
from spacy_elmo.report.page import read_template

N_CHARTS = 4 + 2 + 2 + 3 + 2 + 2  # log, probe, scores, mixes, words of two languages
ENGLISH, KOREAN = (f"#senses article:nth-of-type({number})" for number in (1, 2))
WIDTH = "() => document.documentElement.scrollWidth"

# Find charts that are wider than their container, or have a text outside the drawing.
OUTSIDE = """() => [...document.querySelectorAll(".chart")].filter((chart) => {
  const place = chart.getBoundingClientRect();
  const drawing = chart.querySelector("svg").getBoundingClientRect();
  if (drawing.right > place.right + 1 || drawing.left < place.left - 1) return true;
  return [...chart.querySelectorAll("text")].some((text) => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < drawing.left - 1 || box.right > drawing.right + 1 ||
      box.top < drawing.top - 1 || box.bottom > drawing.bottom + 1);
  });
}).map((chart) => chart.ariaLabel)"""
# Find pairs of texts in a chart that overlap.
OVERLAPS = """() => [...document.querySelectorAll(".chart")].flatMap((chart) => {
  const texts = [...chart.querySelectorAll("text")].filter((text) =>
    text.textContent && getComputedStyle(text).opacity !== "0");
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const found = [];
  for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
    const [a, b] = [boxes[i], boxes[j]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 3) found.push([texts[i].textContent, texts[j].textContent]);
  }
  return found;
})"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    pytest.importorskip("vl_convert", reason="needs vl-convert-python")
    folder = samples.write_all(tmp_path_factory.mktemp("report"))
    write_report(folder, folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def wide(browser, report):
    """Open the page on a wide screen. Tests may change the choices of the reader."""
    with Visit(browser, report) as visit:
        yield visit


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_page_is_drawn_without_a_network(browser, report, width):
    marks = """() => [...document.querySelectorAll(".chart > svg.marks")].map((chart) =>
      chart.querySelectorAll(".role-mark :is(path, line)").length)"""
    with Visit(browser, report, width) as visit:
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            drawn = visit.run(marks)
            assert len(drawn) == N_CHARTS and min(drawn) > 0
            assert visit.run(OUTSIDE) == []
            assert visit.run(OVERLAPS) == []
            assert visit.run(WIDTH) == width
        # The page must also fit when all <details> elements are open.
        visit.run("() => document.querySelectorAll('details').forEach(e => e.open = 1)")
        assert visit.run(WIDTH) == width
        assert visit.said == []
        assert visit.asked == [report.as_uri()]


@pytest.mark.slow
def test_charts_follow_a_change_of_the_colour_scheme(wide):
    fills = """() => [...document.querySelectorAll(".chart svg *")].map((item) =>
      getComputedStyle(item).fill).filter((fill) => fill !== "none")"""
    light = set(wide.run(fills))
    wide.page.emulate_media(color_scheme="dark")
    dark = set(wide.run(fills))
    wide.page.emulate_media(color_scheme="light")
    assert len(light) > 5 and len(dark) > 5
    assert light & dark <= {"rgba(0, 0, 0, 0)", "rgb(0, 0, 0)"}  # only invisible parts


def points(visit, language):
    code = """(place) => [...document.querySelectorAll(place)].map((point) =>
      point.getAttribute("transform"))"""
    return visit.run(code, f"{language} .mark-symbol.role-mark path")


@pytest.mark.slow
def test_layer_can_be_chosen_with_mouse_and_keyboard(wide):
    def found():
        return wide.page.inner_text(KOREAN).replace("\xa0", " ")

    seen = [points(wide, KOREAN)]
    english = points(wide, ENGLISH)
    assert len(seen[0]) == len(english) == 12 + 18
    assert "accuracy 88 %" in found()
    wide.page.locator(KOREAN).get_by_label("layer 0").check()
    assert "accuracy 50 %" in found() and "accuracy 88 %" not in found()
    seen.append(points(wide, KOREAN))
    wide.page.keyboard.press("ArrowRight")
    assert "accuracy 75 %" in found()
    seen.append(points(wide, KOREAN))
    assert len({tuple(each) for each in seen}) == 3
    assert points(wide, ENGLISH) == english
    wide.page.locator(KOREAN).get_by_label("layer 2").check()
    assert points(wide, KOREAN) == seen[0]
    assert wide.said == []


@pytest.mark.slow
def test_curves_can_be_drawn_over_minutes(wide):
    titles = """() => [...document.querySelectorAll(
      "#pretraining .role-axis-title text")].map((text) => text.textContent)"""
    assert wide.run(titles) == ["words"] * 4
    wide.page.get_by_label("minutes").check()
    wide.page.wait_for_function(f"() => !({titles})().includes('words')")
    assert wide.run(titles) == ["minutes"] * 4
    assert wide.said == []


@pytest.mark.slow
def test_score_can_be_chosen(wide):
    chart = wide.page.locator("#compare .chart").first
    first = next(v for v in samples.compare()["variants"] if v["share"] == 1.0)
    for metric, label in (
        ("dep_las", "Labelled dependencies (LAS)"),
        ("tag_acc", "Tag accuracy"),
    ):
        wide.page.get_by_label(label, exact=True).check()
        mean = f"{100 * first['scores'][metric]['mean']:.2f} ±"
        chart.get_by_text(mean).first.wait_for(state="attached")
    assert wide.said == []


@pytest.mark.slow
def test_pointing_at_a_curve_shows_its_numbers(wide):
    chart = wide.page.locator("#pretraining .chart").nth(1)
    wide.scroll_to(chart)
    box = chart.bounding_box()
    wide.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    tip = wide.page.locator(".tip")
    tip.wait_for(state="visible")
    text = tip.inner_text()
    assert re.search(r"words\s+[\d,]+\s+minutes\s+[\d.]+\s+forward\s+[\d.]+", text)


@pytest.mark.slow
@pytest.mark.parametrize("touch", [False, True])
def test_pointing_at_an_occurrence_shows_its_sentence(browser, report, touch):
    with Visit(browser, report, 360, touch=touch) as visit:
        place = f"{ENGLISH} figure:nth-of-type(2) .mark-symbol.role-mark path"
        tip = visit.page.locator(".tip")
        visit.scroll_to(visit.page.locator(place).first)
        sentences = set()
        for point in visit.page.locator(place).all():
            box = point.bounding_box()
            middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            if touch:
                visit.page.touchscreen.tap(*middle)
            else:
                visit.page.mouse.move(*middle)
            tip.wait_for(state="visible")
            assert tip.locator("mark").inner_text() == "play"
            box = tip.bounding_box()
            assert box["x"] >= 0 and 200 < box["x"] + box["width"] <= 360
            sentences.add(tip.inner_text())
        assert len(sentences) > 12  # some points overlap
        assert any('<b>anything</b> & "everything".' in each for each in sentences)
        visit.run("() => scrollBy(0, -300)")
        tip.wait_for(state="hidden")
        # The width of the window changes when a phone is turned.
        visit.page.set_viewport_size({"width": 700, "height": 360})
        visit.page.wait_for_function(f"() => !({OUTSIDE})().length")
        visit.page.set_viewport_size({"width": 320, "height": 700})
        visit.page.wait_for_function(f"() => !({OUTSIDE})().length")
        assert visit.run(WIDTH) == 320
        assert visit.said == []


@pytest.mark.slow
def test_tables_can_be_read_without_scripts(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "charts need JavaScript" in page.inner_text("main")
    assert page.locator("#senses details table").count() == 4
    context.close()


@pytest.mark.slow
def test_charts_are_vega_lite_without_a_browser(report):
    import vl_convert

    (script,) = parse(report.read_text(encoding="utf-8")).find("script", id="charts")
    specs = json.loads("".join(script.parts))["specs"]
    assert len(specs) == N_CHARTS
    for spec in specs.values():
        compiled = vl_convert.vegalite_to_vega(spec)
        assert compiled["marks"] and compiled["data"]


# Colours


def palettes():
    light, dark = read_template("colors.css").split("@media")
    return [dict(re.findall(r"--([\w-]+): (#\w{6});", text)) for text in (light, dark)]


def contrast(one, other):
    def luminance(color):
        values = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values
        ]
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_that_wcag_asks_for():
    light, dark = palettes()
    assert light.keys() == dark.keys()
    for colors in (light, dark):
        for text in ("ink", "soft", "accent"):
            for ground in ("page", "card"):
                assert contrast(colors[text], colors[ground]) >= 4.5, text
        assert contrast(colors["ink"], colors["mark"]) >= 4.5
        for number in range(1, 9):
            assert contrast(colors[f"series-{number}"], colors["card"]) >= 3, number
        for number in range(1, 5):  # colours of bars that have numbers in them
            text = contrast(colors[f"series-{number}"], colors["on-series"])
            assert text >= 4.5, number
        assert contrast(colors["other"], colors["card"]) >= 3
