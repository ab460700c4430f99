"""Heat maps: how similar words are to each other, in two sentences or in each layer."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from spacy.tokens import Doc, Span, Token

from .picture import Picture
from .vectors_of import get_cosines, get_layers, get_vectors, get_words, to_heat

CELL = Markup('<td class="heat" style="{}" title="{} / {}: {}">{}</td>')


def similarity(
    doc: Doc | Span, other: Doc | Span, *, layer: int | None = None
) -> Picture:
    """Show how similar each word of a sentence is to each word of another one, by the
    cosine of their vectors in context.

    doc, other (Doc | Span): The words of the rows, and those of the columns.
    layer (int | None): The number of a layer; None for the mixed vectors.
    """
    rows, columns = get_words(doc), get_words(other)
    cosines = get_cosines(get_vectors(rows, layer), get_vectors(columns, layer))
    name = "" if layer is None else f", layer {layer}"
    title = f"Similarity of words in context (cosine{name})"
    legend = _make_legend(cosines)
    return Picture(title, legend + _make_table(rows, columns, cosines), rows[0].lang_)


def layers(doc: Doc | Span) -> Picture:
    """Show how similar the words of a doc are to each other in each layer.

    Layer 0 knows only the spelling of words. In higher layers, words that are used
    alike become similar.
    """
    words = get_words(doc)
    found = get_layers(words)
    parts = []
    for number, vectors in enumerate(found):
        note = " (no context)" if number == 0 else ""
        cosines = get_cosines(vectors, vectors)
        table = _make_table(words, words, cosines, small=True)
        part = Markup("<div><h4>Layer {}{}</h4>{}</div>")
        parts.append(part.format(number, note, table))
    body = Markup('<div class="several">{}</div>').format(Markup("").join(parts))
    title = "Similarity of words in each layer (stronger colour: more similar)"
    return Picture(title, body, words[0].lang_)


def _make_legend(cosines: np.ndarray) -> Markup:
    text = "The strongest colour is {:.2f}, the weakest {:.2f}."
    legend = text.format(cosines.max(), cosines.min())
    return Markup('<p class="soft">{}</p>').format(legend)


def _make_table(
    rows: Sequence[Token],
    columns: Sequence[Token],
    cosines: np.ndarray,
    *,
    small: bool = False,
) -> Markup:
    """Make a table of cosines, (n_rows, n_columns).

    small (bool): Leave out the numbers.
    """
    low, high = float(cosines.min()), float(cosines.max())
    head = Markup("").join(Markup("<th>{}</th>").format(t.text) for t in columns)
    lines = []
    for row, values in zip(rows, cosines.tolist()):
        cells = Markup("").join(
            CELL.format(
                to_heat(value, low, high),
                row.text,
                column.text,
                number,
                "" if small else number,
            )
            for column, value in zip(columns, values)
            for number in [f"{round(value, 2) + 0.0:.2f}"]  # no "-0.00"
        )
        lines.append(Markup("<tr><th>{}</th>{}</tr>").format(row.text, cells))
    table = Markup(
        '<div class="scroll{}"><table><thead><tr><td></td>{}</tr></thead>\n'
        "{}</table></div>"
    )
    return table.format(" small" if small else "", head, Markup("\n").join(lines))
