"""Get the words of docs and spans, and their vectors, for a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from spacy.tokens import Doc, Span, Token
from thinc.util import to_numpy

from ..analysis.layer_vectors import to_unit_length

MAX_WORDS = 100
MAX_HEAT = 55  # percent of the colour, so that text on it has enough contrast


def get_words(item: Doc | Span, n_most: int = MAX_WORDS) -> list[Token]:
    """Return all tokens except whitespace. Raise ValueError if there are none, or too
    many for a picture."""
    if not isinstance(item, Doc | Span):
        raise TypeError(f"found {type(item).__name__}; expected a Doc or a Span")
    words = [token for token in item if not token.is_space]
    if not 0 < len(words) <= n_most:
        raise ValueError(
            f"found {len(words)} words; expected 1 to {n_most} in a picture, for "
            "example those of a span such as doc[:20]"
        )
    return words


def get_layers(words: Sequence[Token]) -> np.ndarray:
    """Return the layers of tokens of a doc, (n_layers + 1, n_words, width)."""
    layers = to_numpy(words[0].doc._.elmo.layers)
    return layers[[token.i for token in words]].transpose(1, 0, 2)


def get_vectors(words: Sequence[Token], layer: int | None) -> np.ndarray:
    """Return the vectors of tokens of a doc, (n_words, width).

    layer (int | None): The number of a layer; None for the mixed vectors.
    """
    if layer is None:
        vectors = to_numpy(words[0].doc._.elmo.vectors)
        return vectors[[token.i for token in words]]
    layers = get_layers(words)
    if not is_number_below(layer, len(layers)):
        raise ValueError(
            f"layer is {layer!r}; expected 0 to {len(layers) - 1}, or None for the "
            "mixed vectors"
        )
    return layers[layer]


def is_number_below(value: Any, limit: int) -> bool:
    """Return whether a value is a whole number from 0 to below the limit."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_number and 0 <= value < limit


def get_cosines(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the cosine of each row (n, width) with each column (m, width), (n, m)."""
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(
            f"found vectors of widths {rows.shape[1]} and {columns.shape[1]}; expected "
            "docs of the same biLM"
        )
    one, other = (to_unit_length(x.astype("float64")) for x in (rows, columns))
    return (one @ other.T).clip(-1, 1)


def to_heat(value: float, low: float, high: float) -> Markup:
    """Return the style of a cell that has a stronger colour for a higher value.

    low, high (float): The values of the weakest and the strongest colour.
    """
    share = (value - low) / (high - low) if high > low else 1.0
    return Markup("--heat:{}%").format(round(MAX_HEAT * share))
