"""Words that are shaded by how unexpected they are."""

import numpy as np
from markupsafe import Markup
from spacy.tokens import Doc, Span, Token

from .picture import Picture
from .vectors_of import get_words, to_heat

MAX_WORDS = 2000
DIRECTIONS = ("Given the words before", "Given the words after")
WORD = Markup(
    '<ruby class="heat" style="{}" title="{:.1f} bits">{}<rt>{:.0f}</rt></ruby>{}'
)


def surprisal(doc: Doc | Span) -> Picture:
    """Show how unexpected each word is, in bits. A stronger colour means more bits.

    doc (Doc | Span): The words, from a pipeline whose `elmo` component has the setting
        `surprisal = true`.
    """
    words = get_words(doc, MAX_WORDS)
    bits = words[0].doc._.elmo_surprisal[[token.i for token in words]]  # (n_words, 2)
    high = float(bits.max())
    parts = [
        Markup('<h4>{}: {:.1f} bits a word</h4><p class="words">{}</p>').format(
            name, float(column.mean()), _shade(words, column, high)
        )
        for name, column in zip(DIRECTIONS, bits.T)
    ]
    title = "How unexpected each word is, in bits"
    return Picture(title, Markup("\n").join(parts), words[0].lang_)


def _shade(words: list[Token], bits: np.ndarray, high: float) -> Markup:
    return Markup("").join(
        WORD.format(
            to_heat(value, 0, high),
            value,
            token.text,
            value,
            " " if token.whitespace_ else "",
        )
        for token, value in zip(words, bits.tolist())
    )
