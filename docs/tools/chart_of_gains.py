"""Draw scores without and with ELMo as a chart, from a table of docs."""

import re
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from svg import element, lines, save_svg, text

MARGIN, TOP, ROW, LEFT, PANEL = 16, 98, 44, 180, 205
# Rows of the table, with their names and data sets in the chart.
ROWS = {
    "UD English EWT: tags (XPOS)": ("English tags", "영어 품사 태그", "UD EWT"),
    "LAS": ("English dependencies", "영어 의존 구문", "UD EWT, LAS"),
    "WNUT-17: entities (F)": ("English entities", "영어 개체명", "WNUT-17, F"),
    "UD Korean Kaist: XPOS": ("Korean tags", "한국어 태그", "UD Kaist"),
    "KLUE-NER, own split: entities (F)": (
        "Korean entities",
        "한국어 개체명",
        "KLUE-NER, F",
    ),
}
WORDS = {
    "en": {
        "title": [
            "The same spaCy pipeline without and",
            "with ELMo (scores in percent)",
        ],
        "without": "spaCy’s CNN",
        "with": "with ELMo",
        "panels": ["trained on all data", "trained on a tenth of the data"],
    },
    "ko": {
        "title": ["같은 spaCy 파이프라인,", "ELMo 없이 또 ELMo와 함께 (점수, %)"],
        "without": "spaCy CNN",
        "with": "ELMo 사용",
        "panels": ["데이터 전부로 학습", "데이터의 10분의 1로 학습"],
    },
}


class Gain(NamedTuple):
    """The scores of a task without and with ELMo, in percent."""

    without: float
    with_elmo: float


def read_gains(page: Path) -> dict[str, tuple[Gain, Gain]]:
    """Read the table of accuracies from a page: the name of each row, and its scores
    with all data and with a tenth. Rows without both are left out."""
    cells = r" ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| [\d.]+ % \([\d, ]+\) \|"
    line = re.compile(rf"^\| ([^|]+) \|{cells}{cells}$", re.M)
    found = {}
    for name, *scores in line.findall(page.read_text("utf-8")):
        numbers = [float(score) for score in scores]
        found[name] = (Gain(*numbers[:2]), Gain(*numbers[2:]))
    return found


def draw_gains(path: Path, page: Path, lang: str) -> None:
    """Write the chart.

    page (Path): The page with the table, in English.
    lang (str): The language of the words in the chart, "en" or "ko".
    """
    gains, words = read_gains(page), WORDS[lang]
    parts = [*lines(MARGIN, 30, words["title"], "title"), *draw_legend(words)]
    described, y = [], TOP
    for panel, title in enumerate(words["panels"]):
        parts.append(text(MARGIN, y + 18, title, "strong"))
        described.append(f"{title}:")
        y += 50
        for row, (english, korean, data) in ROWS.items():
            name, gain = english if lang == "en" else korean, gains[row][panel]
            parts += [text(MARGIN, y - 3, name), text(MARGIN, y + 15, data, "soft")]
            parts += draw_gain(y, gain)
            described.append(f"{name} {gain.without:.1f} → {gain.with_elmo:.1f};")
            y += ROW
    title = f"{' '.join(words['title'])}. {' '.join(described)}"
    save_svg(path, y, parts, title=title, lang=lang)


def draw_legend(words: dict) -> list[Markup]:
    return [
        draw_dot(MARGIN + 6, 77, "other"),
        text(MARGIN + 20, 82, words["without"], "soft"),
        draw_dot(MARGIN + 136, 77, "series-1"),
        text(MARGIN + 150, 82, words["with"], "soft"),
    ]


def draw_gain(y: float, gain: Gain) -> list[Markup]:
    """Draw a line from the score without ELMo to that with ELMo, on an axis from 0 to
    100."""
    start, end = (LEFT + PANEL * score / 100 for score in gain)
    axis = f"M{LEFT} {y:g}H{LEFT + PANEL}"
    return [
        element("path", d=axis, class_="line", stroke_dasharray="2 4"),
        element(
            "path",
            d=f"M{start:.1f} {y:g}H{end:.1f}",
            stroke="var(--series-1)",
            stroke_width=3,
            stroke_opacity=0.45,
        ),
        draw_dot(start, y, "other"),
        draw_dot(end, y, "series-1"),
        text(start - 9, y + 5, f"{gain.without:.1f}", "soft end"),
        text(end + 9, y + 5, f"{gain.with_elmo:.1f}", "strong"),
    ]


def draw_dot(x: float, y: float, color: str) -> Markup:
    return element("circle", cx=float(x), cy=float(y), r=6, fill=f"var(--{color})")
