"""A map of the uses of a word: uses with similar vectors lie near each other."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from spacy.language import Language
from spacy.tokens import Doc

from ..analysis.sense_map import (
    context_vectors,
    neighbor_accuracy,
    project_to_plane,
    sentence_vectors,
)
from ..report.charts.base import COLORS, SHAPES
from ..report.formatting import format_percent
from ..report.sections.senses_section import scale_points
from .picture import Picture
from .vectors_of import get_layers, get_words, is_number_below

WIDTH, HEIGHT, MARGIN, RADIUS = 480, 320, 20, 11
MAX_WORDS = 1000
# The outlines of SHAPES, for a radius of 1.
OUTLINES = {
    "circle": "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "triangle-up": "M0,-1.3L1.2,.8H-1.2Z",
    "diamond": "M0,-1.2L1.2,0L0,1.2L-1.2,0Z",
    "cross": "M-.5,-1.1H.5V-.5H1.1V.5H.5V1.1H-.5V.5H-1.1V-.5H-.5Z",
    "triangle-down": "M0,1.3L1.2,-.8H-1.2Z",
}
KINDS = ("context", "sentence", "mix")


class Use(NamedTuple):
    """A use of the word: the doc, the characters of the word in it, and its sense, ""
    if that is not given."""

    doc: Doc
    start: int
    end: int
    sense: str


def senses(
    nlp: Language,
    sentences: Sequence[str] | Mapping[str, Sequence[str]],
    word: str,
    *,
    layer: int | str = "context",
) -> Picture:
    """Map the uses of a word, so that those with similar vectors lie together.

    nlp (Language): A pipeline with `elmo`.
    sentences (Sequence[str] | Mapping[str, Sequence[str]]): Sentences that contain the
        word. If they are given by sense, {"sense": [sentences]}, each sense gets its
        own colour and shape.
    word (str): The word, in any case. A sentence may have it with an ending, as Korean
        nouns have particles.
    layer (int | str): The vectors to compare. "context": those from which the biLM
        predicts the word, which separate senses best, because the form of the word has
        no influence on them. "sentence": the mean of all other words. "mix": the mean
        of the word's own layers. Or the number of one of these layers.
    """
    uses = find_uses(nlp, sentences, word)
    vectors = np.stack([_get_vector(use, layer) for use in uses])
    points = scale_points(project_to_plane(vectors).tolist())
    names = list(dict.fromkeys(use.sense for use in uses))
    body = _draw_map(uses, points, names) + _list_uses(uses, names)
    if len(names) > 1:
        share = neighbor_accuracy(vectors, [use.sense for use in uses])
        text = f"The nearest other use has the same sense: {format_percent(share, 0)}."
        body = Markup('<p class="soft">{}</p>').format(text) + body
    title = f"{len(uses)} uses of {word}: similar ones lie together"
    return Picture(title, body, nlp.lang or "")


def find_uses(
    nlp: Language, sentences: Sequence[str] | Mapping[str, Sequence[str]], word: str
) -> list[Use]:
    """Find the uses of a word. Raise ValueError if a sentence lacks the word, or if
    there are fewer than two uses."""
    if isinstance(sentences, str):
        raise TypeError("found one string; expected a list of sentences")
    if not isinstance(word, str) or not word.strip():
        raise ValueError(f"found the word {word!r}; expected one that is not empty")
    by_sense = sentences if isinstance(sentences, Mapping) else {"": sentences}
    uses = []
    for sense, texts in by_sense.items():
        if isinstance(texts, str):
            raise TypeError("found one string; expected a list of sentences")
        for doc in nlp.pipe(texts):
            places = _find_word(doc, word)
            if not places:
                raise ValueError(
                    f"found no '{word}' in '{doc.text}'; expected it in each sentence"
                )
            uses += [Use(doc, start, end, str(sense)) for start, end in places]
    if len(uses) < 2:
        raise ValueError(f"found {len(uses)} uses of '{word}'; expected at least two")
    return uses


def _find_word(doc: Doc, word: str) -> list[tuple[int, int]]:
    """Return the characters at which the word begins and ends. If it stands nowhere as
    a whole, tokens that begin with it count."""
    starts = {token.idx for token in doc}
    ends = {token.idx + len(token) for token in doc}
    found = [
        match.span()
        for match in re.finditer(re.escape(word), doc.text, re.IGNORECASE)
        if match.start() in starts and match.end() > match.start()
    ]
    return [place for place in found if place[1] in ends] or found


def _get_vector(use: Use, layer: int | str) -> np.ndarray:
    """Return the vector of a use, (width,)."""
    words = get_words(use.doc, MAX_WORDS)
    layers = get_layers(words)
    rows = [
        row
        for row, token in enumerate(words)
        if token.idx < use.end and token.idx + len(token) > use.start
    ]
    if layer == "context":
        return context_vectors(layers, rows)[-1]
    if layer == "sentence":
        return sentence_vectors(layers, rows)[-1]
    mean = layers[:, rows].mean(1)  # (n_layers + 1, width)
    if layer == "mix":
        return mean.mean(0)
    if not is_number_below(layer, len(layers)):
        raise ValueError(
            f"layer is {layer!r}; expected 0 to {len(layers) - 1}, or one of "
            + ", ".join(KINDS)
        )
    return mean[int(layer)]


def _draw_map(
    uses: Sequence[Use], points: Sequence[Sequence[float]], names: Sequence[str]
) -> Markup:
    """Draw a point with a number for each use.

    points (Sequence[Sequence[float]]): Coordinates from -1 to 1, (n_uses, 2).
    """
    marks = []
    for number, (use, (x, y)) in enumerate(zip(uses, points), 1):
        place = (
            WIDTH / 2 + x * (WIDTH / 2 - MARGIN),
            HEIGHT / 2 - y * (HEIGHT / 2 - MARGIN),
        )
        tooltip = f"{use.sense}: {use.doc.text}" if use.sense else use.doc.text
        series = names.index(use.sense)
        marks.append(_draw_mark(number, series, place, tooltip))
    alt = f"A map of {len(uses)} points, which are listed below."
    svg = '<svg viewBox="0 0 {} {}" role="img" aria-label="{}">\n{}\n</svg>\n'
    return Markup(svg).format(WIDTH, HEIGHT, alt, Markup("\n").join(marks))


def _draw_mark(
    number: int, series: int, place: tuple[float, float], tooltip: str
) -> Markup:
    mark = (
        '<g transform="translate({:.1f} {:.1f})"><title>{}</title>'
        '<path d="{}" transform="scale({})" fill="{}" fill-opacity=".92" '
        'stroke="var(--card)" stroke-width=".12"/><text>{}</text></g>'
    )
    outline = OUTLINES[SHAPES[series % len(SHAPES)]]
    color = COLORS[series % len(COLORS)]
    return Markup(mark).format(*place, tooltip, outline, RADIUS, color, number)


def _list_uses(uses: Sequence[Use], names: Sequence[str]) -> Markup:
    """List the sentences under their senses. The word is marked in each."""
    parts = []
    for series, name in enumerate(names):
        items = []
        for number, use in enumerate(uses, 1):
            if use.sense == name:
                text = use.doc.text
                symbol = _draw_mark(number, series, (16, 16), name)
                items.append(
                    Markup(
                        '<li><svg viewBox="0 0 32 32" aria-hidden="true">{}</svg>'
                        "{}<mark>{}</mark>{}</li>"
                    ).format(
                        symbol,
                        text[: use.start],
                        text[use.start : use.end],
                        text[use.end :],
                    )
                )
        heading = Markup("<h4>{}</h4>").format(name) if name else Markup("")
        rows = Markup("\n").join(items)
        parts.append(heading + Markup("<ol>\n{}\n</ol>\n").format(rows))
    return Markup("").join(parts)
