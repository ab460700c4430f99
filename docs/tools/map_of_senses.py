"""Draw the uses of a word with several senses as a map, above some sentences."""

from pathlib import Path

import numpy as np
from markupsafe import Markup
from svg import WIDTH, element, lines, save_svg, text

from spacy_elmo import load_bilm
from spacy_elmo.analysis.sense_map import (
    Occurrence,
    neighbor_accuracy,
    occurrence_vectors,
    project_to_plane,
    read_occurrences,
)
from spacy_elmo.report.charts.base import COLORS, SHAPES
from spacy_elmo.report.sections.senses_section import scale_points
from spacy_elmo.show.word_uses import OUTLINES
from spacy_elmo.text.tokenizers import choose_tokenization

SENSES = Path(__file__).parents[2] / "assets" / "senses"
MARGIN, RADIUS, SMALL_RADIUS, LINE = 16, 11, 7, 23
TOP, HEIGHT = 142, 270  # of the map
LISTED = 4  # sentences of each sense
ACROSS = 19  # characters of a sentence before and after the word
WORDS = {
    "en": {
        "title": ["{n} uses of “{word}”:", "ELMo puts the same sense together"],
        "note": [
            "Each point is the vector of “{word}” in one sentence. A",
            "line leads to the nearest other vector: {right} of {n} have",
            "the same sense. Mean of {words} words: {mean:.0f} % (top layer",
            "of {bilm}).",
        ],
    },
    "ko": {
        "title": ["문장 {n}개의 “{word}”:", "뜻이 같으면 벡터도 가깝습니다"],
        "note": [
            "점 하나는 문장 하나에 쓰인 “{word}”의 벡터이고, 선은",
            "가장 가까운 벡터를 가리킵니다. {n}개 중 {right}개가 뜻이",
            "같은 벡터와 가장 가깝습니다. 단어 {words}개의 평균은",
            "{mean:.0f}%입니다({bilm}, 맨 위 층).",
        ],
    },
}
# The names of senses in Korean pictures, if they differ from those in assets/senses.
KOREAN_NAMES = {
    "wood": "막대기",
    "adhere": "달라붙다",
    "greeting": "만나거나 헤어질 때 하는 인사",
    "personnel": "회사의 인사(人事)",
    "eye": "보는 눈",
    "snow": "내리는 눈",
}


def draw_senses(path: Path, lang: str, word: str, bilm: str) -> None:
    """Write the map of a word of assets/senses by the top layer of a biLM.

    lang (str): The language of the words in the picture, "en" or "ko".
    word (str): An English or a Korean word.
    """
    spoken = "en" if word.isascii() else "ko"
    file = SENSES / f"{spoken}.jsonl"
    every = read_occurrences(file)
    by_word = {use.word: [u for u in every if u.word == use.word] for use in every}
    if word not in by_word:
        raise SystemExit(f"{file}: found no '{word}'; expected a word of this file")
    model = load_bilm(bilm)
    nlp = choose_tokenization(model.config.training, spoken, None, say=print).load()
    tops = {
        name: occurrence_vectors(model, nlp, found)[:, model.config.lstm.n_layers]
        for name, found in by_word.items()
    }
    shares = {
        name: neighbor_accuracy(tops[name], [use.sense for use in found])
        for name, found in by_word.items()
    }
    uses = by_word[word]
    facts = {
        "n": len(uses),
        "word": word,
        "right": round(shares[word] * len(uses)),
        "words": len(by_word),
        "mean": 100 * np.mean(list(shares.values())),
        "bilm": bilm,
    }
    title, note = (
        [line.format(**facts) for line in WORDS[lang][key]] for key in ("title", "note")
    )
    numbers = number_uses(uses)
    listed, height = list_uses(uses, numbers, lang)
    parts = [
        *lines(MARGIN, 30, title, "title"),
        *lines(MARGIN, 72, note, "soft"),
        *draw_points(uses, numbers, tops[word]),
        *listed,
    ]
    save_svg(path, height, parts, title=" ".join(title + note), lang=lang)


def number_uses(uses: list[Occurrence]) -> dict[int, int]:
    """Number the uses whose sentences are listed: the first ones of each sense.

    RETURNS (dict[int, int]): For the index of a use, its number.
    """
    listed = []
    for sense in dict.fromkeys(use.sense for use in uses):
        found = [index for index, use in enumerate(uses) if use.sense == sense]
        listed += found[:LISTED]
    return {index: number for number, index in enumerate(listed, 1)}


def draw_points(
    uses: list[Occurrence], numbers: dict[int, int], vectors: np.ndarray
) -> list[Markup]:
    """Draw a point for each use, with its number if it has one, and lines from each to
    the use with the nearest vector.

    vectors (np.ndarray): (n_uses, width).
    """
    senses = list(dict.fromkeys(use.sense for use in uses))
    wide, high = WIDTH / 2 - 2 * MARGIN, HEIGHT / 2 - MARGIN
    points = scale_points(project_to_plane(vectors).tolist())
    spots = move_apart(
        [[WIDTH / 2 + x * wide, TOP + HEIGHT / 2 - y * high] for x, y in points]
    )
    border = f"M{MARGIN} {TOP + HEIGHT}H{WIDTH - MARGIN}"
    parts = [element("path", d=border, class_="line")]
    for start, end in zip(spots, find_nearest(vectors)):
        (x, y), (to_x, to_y) = start, spots[end]
        path = f"M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}"
        parts.append(element("path", d=path, class_="arrow", stroke_opacity=0.6))
    return parts + [
        draw_mark(numbers.get(index), senses.index(uses[index].sense), spot)
        for index, spot in enumerate(spots)
    ]


def find_nearest(vectors: np.ndarray) -> list[int]:
    """Return the index of the nearest other vector for each vector, by the cosine."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    return cosines.argmax(1).tolist()


def move_apart(spots: list[list[float]]) -> list[list[float]]:
    """Move points that would hide each other apart, as little as possible."""
    found = np.array(spots)
    for _ in range(50):
        steps = found[:, None] - found[None]  # (n, n, 2)
        far = np.maximum(np.linalg.norm(steps, axis=2, keepdims=True), 1e-6)
        found += (steps / far * np.maximum(2 * RADIUS - far, 0)).sum(1) / 4
    return found.tolist()


def draw_mark(number: int | None, series: int, spot: list[float]) -> Markup:
    outline = element(
        "path",
        d=OUTLINES[SHAPES[series % len(SHAPES)]],
        transform=f"scale({SMALL_RADIUS if number is None else RADIUS})",
        fill=COLORS[series % len(COLORS)],
    )
    x, y = (round(value) for value in spot)
    label = element("text", number, y=5, class_="number") if number else Markup("")
    return element("g", outline + label, transform=f"translate({x} {y})")


def list_uses(
    uses: list[Occurrence], numbers: dict[int, int], lang: str
) -> tuple[list[Markup], int]:
    """List what stands before and after the word, sense by sense.

    RETURNS (tuple[list[Markup], int]): The lines, and where they end.
    """
    y = TOP + HEIGHT + LINE
    parts = []
    for series, sense in enumerate(dict.fromkeys(use.sense for use in uses)):
        name = KOREAN_NAMES.get(sense, sense) if lang == "ko" else sense
        parts.append(text(MARGIN, y, name, "strong"))
        for index, number in numbers.items():
            use = uses[index]
            if use.sense != sense:
                continue
            y += LINE
            parts.append(draw_mark(number, series, [MARGIN + RADIUS, y - 5]))
            parts.append(text(MARGIN + 32, y, mark_word(use)))
        y += LINE + 6
    return parts, y - 8


def mark_word(use: Occurrence) -> Markup:
    """Return a sentence, shortened to one line, with its word in bold."""
    across = ACROSS if use.text.isascii() else ACROSS * 2 // 3  # Hangul is wider
    before = shorten(use.text[: use.start][::-1], across)[::-1]
    room = 2 * across - len(before)
    word = element("tspan", use.text[use.start : use.end], class_="strong")
    return Markup("") + before + word + shorten(use.text[use.end :], room)


def shorten(string: str, length: int) -> str:
    """Cut a text between words, and mark the cut."""
    if len(string) <= length:
        return string
    return string[: string.rindex(" ", 0, length)] + "…"
