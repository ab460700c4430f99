"""Format numbers and texts for the page."""

import math
import re
from collections.abc import Sequence

from ..results import Layer
from .page_parts import MarkedText

SPACE = "\N{NO-BREAK SPACE}"
MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
CONTEXT = 15  # tokens shown on either side of a word


def format_percent(share: float | None, digits: int = 1) -> str:
    """Format a share, such as 0.5 as "50.0 %"."""
    if share is None or not math.isfinite(share):
        return MISSING
    return f"{format_number(100 * share, digits)}{SPACE}%"


def format_number(value: float | None, digits: int = 0) -> str:
    """Format a number with commas between thousands."""
    if value is None or not math.isfinite(value):
        return MISSING
    rounded = round(value, digits) + 0.0  # turns -0.0 into 0.0
    return f"{rounded:,.{digits}f}".replace("-", MINUS)


def format_perplexity(value: float) -> str:
    """Format a perplexity, with one decimal if it is below 1,000."""
    return format_number(value, 0 if value >= 1000 else 1)


def format_count(n: int, name: str) -> str:
    """Format a number of things, such as "3 seeds"."""
    return f"{n:,}{SPACE}{name}" + ("" if n == 1 else "s")


def layer_label(layer: Layer) -> str:
    return f"layer {layer}" if str(layer).isdigit() else str(layer)


def guess_language(text: str) -> str:
    """Return "ko" for a text with Hangul, otherwise an empty string, because no other
    language can be recognized by its letters with certainty."""
    return "ko" if HANGUL.search(text) else ""


def mark_token(tokens: Sequence[str], position: int) -> MarkedText:
    """Mark a token in its sentence. A long sentence is cut around the token."""
    start, end = max(0, position - CONTEXT), position + 1 + CONTEXT
    before = " ".join(tokens[start:position])
    after = " ".join(tokens[position + 1 : end])
    return MarkedText(
        ("… " if start else "") + before + (" " if before else ""),
        tokens[position],
        (" " if after else "") + after + (" …" if end < len(tokens) else ""),
        guess_language(" ".join(tokens)),
    )
