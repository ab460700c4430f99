"""Draw the uses of a word with several senses as a map, beside their sentences."""

from pathlib import Path

import numpy as np
from markupsafe import Markup
from svg import element, save_svg, text

from spacy_elmo import load_bilm
from spacy_elmo.analysis.sense_map import (
    Occurrence,
    neighbor_accuracy,
    occurrence_vectors,
    project_to_plane,
    read_occurrences,
    vector_names,
)
from spacy_elmo.bilm.formats.bundled import bundled_for
from spacy_elmo.report.charts.base import COLORS, SHAPES
from spacy_elmo.report.sections.senses_section import scale_points
from spacy_elmo.show.word_uses import OUTLINES
from spacy_elmo.text.tokenizers import choose_tokenization

SENSES = Path(__file__).parents[2] / "assets" / "senses"
MAP, MARGIN, RADIUS, LINE, TOP = 380, 22, 11, 20, 66
BEFORE, AFTER = 21, 24  # characters of a sentence around the word
WIDTH = 800
WORDS = {
    "en": {
        "title": "{n} uses of “{word}”: ELMo puts the same sense together",
        "note": "Each point is the vector of “{word}” in one sentence. "
        "Nearest other point of the same sense: {right} of {n}.",
    },
    "ko": {
        "title": "문장 {n}개의 “{word}”: 뜻이 같으면 벡터도 가깝습니다",
        "note": "점 하나는 문장 하나에 쓰인 “{word}”의 벡터입니다. "
        "가장 가까운 점과 뜻이 같은 점: {n}개 중 {right}개",
    },
}


def draw_senses(
    output: Path, lang: str, word: str, bilm: str | None, vectors: str | None
) -> None:
    """Write output/senses_WORD.svg, with titles in English, and senses_WORD.ko.svg.

    lang (str): The language of the word: the file of assets/senses that has it.
    bilm (str | None): A biLM; None for the bundled one.
    vectors (str | None): One of `vector_names`; None for the top layer.
    """
    path = SENSES / f"{lang}.jsonl"
    uses = [use for use in read_occurrences(path) if use.word == word]
    if not uses:
        raise SystemExit(f"{path}: found no '{word}'; expected a word of this file")
    model = load_bilm(bilm or bundled_for(lang))
    names = vector_names(model)
    chosen = vectors or str(model.config.lstm.n_layers)
    nlp = choose_tokenization(model.config.training, lang, None, say=print).load()
    found = occurrence_vectors(model, nlp, uses)[:, names.index(chosen)]
    senses = [use.sense for use in uses]
    right = round(neighbor_accuracy(found, senses) * len(uses))
    points = scale_points(project_to_plane(found).tolist())
    for page_lang, words in WORDS.items():
        facts = {"n": len(uses), "word": word, "right": right}
        title, note = (words[key].format(**facts) for key in ("title", "note"))
        ending = "svg" if page_lang == "en" else f"{page_lang}.svg"
        parts = [
            text(MARGIN, 32, title, "title"),
            text(MARGIN, 53, note, "soft"),
            *draw_points(uses, points),
            *list_uses(uses),
        ]
        n_lines = len(uses) + len(dict.fromkeys(senses))
        height = TOP + 34 + max(MAP - 60, n_lines * LINE)
        save_svg(
            output / f"senses_{word}.{ending}",
            (WIDTH, height),
            parts,
            title=f"{title}. {note}",
            lang=page_lang,
        )


def draw_points(uses: list[Occurrence], points: list[list[float]]) -> list[Markup]:
    """Draw a point with a number for each use.

    points (list[list[float]]): Coordinates from -1 to 1, (n_uses, 2).
    """
    senses = list(dict.fromkeys(use.sense for use in uses))
    half = MAP / 2 - MARGIN
    spots = [[MAP / 2 + x * half, TOP + 10 + half - y * half] for x, y in points]
    spots = move_apart(spots)
    border = f"M{MAP + 4} {TOP}V{TOP + MAP - MARGIN}"
    return [element("path", d=border, class_="line")] + [
        draw_mark(number, senses.index(use.sense), (x, y))
        for number, (use, (x, y)) in enumerate(zip(uses, spots), 1)
    ]


def move_apart(spots: list[list[float]]) -> list[list[float]]:
    """Move points that would hide each other apart, as little as possible."""
    found = np.array(spots)
    for _ in range(50):
        steps = found[:, None] - found[None]  # (n, n, 2)
        far = np.maximum(np.linalg.norm(steps, axis=2, keepdims=True), 1e-6)
        found += (steps / far * np.maximum(2 * RADIUS - far, 0)).sum(1) / 4
    return found.tolist()


def draw_mark(
    number: int, series: int, spot: tuple[float, float], radius: float = RADIUS
) -> Markup:
    outline = element(
        "path",
        d=OUTLINES[SHAPES[series % len(SHAPES)]],
        transform=f"scale({radius:g})",
        fill=COLORS[series % len(COLORS)],
        fill_opacity=0.9,
    )
    x, y = (round(value) for value in spot)
    label = element("text", number, y=4, class_="number")
    return element("g", outline + label, transform=f"translate({x} {y})")


def list_uses(uses: list[Occurrence]) -> list[Markup]:
    """List what stands before and after the word, sense by sense."""
    x, y = MAP + 184, TOP + 22
    parts = []
    for series, sense in enumerate(dict.fromkeys(use.sense for use in uses)):
        parts.append(text(MAP + 16, y, sense, "strong"))
        for number, use in enumerate(uses, 1):
            if use.sense != sense:
                continue
            y += LINE
            before = shorten(use.text[: use.start][::-1], BEFORE)[::-1]
            after = shorten(use.text[use.end :], AFTER)
            word = element("tspan", use.text[use.start : use.end], class_="strong")
            space = 4 if before.endswith(" ") else 0
            parts.append(draw_mark(number, series, (MAP + 24, y - 5), 8.5))
            parts.append(text(x - space, y, before.strip(), "small end"))
            parts.append(text(x, y, word + after.rstrip(), "small"))
        y += LINE + 4
    return parts


def shorten(string: str, length: int) -> str:
    """Cut a text between words, and mark the cut."""
    if len(string) <= length:
        return string
    return string[: string.rindex(" ", 0, length)] + "…"
