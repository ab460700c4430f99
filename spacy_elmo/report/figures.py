"""Parts of the page: tables, charts with their data, and what a reader can choose."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SPACE = "\N{NO-BREAK SPACE}"
MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
CONTEXT = 15  # tokens shown at either side of a word


class Marked(NamedTuple):
    """A text in which a word is marked. lang (str): Empty if not known."""

    before: str
    word: str
    after: str
    lang: str = ""


class Pair(NamedTuple):
    """A number, and one in small below it."""

    main: str
    below: str


Cell = str | Marked | Pair


class Table(NamedTuple):
    """numeric (int): How many of the last columns are numbers; the first column names
    the rows."""

    columns: list[str]
    rows: list[list[Cell]]
    numeric: int = 0


class Figure(NamedTuple):
    """A chart.

    alt (str): What it shows, in a sentence, for those who do not see it.
    spec (dict[str, Any]): In Vega-Lite.
    table (Table): The same data.
    """

    title: str
    alt: str
    spec: dict[str, Any]
    table: Table
    note: str = ""


class Choice(NamedTuple):
    """Radio buttons that set a parameter of charts.

    options (dict[str, str]): Labels by values.
    chosen (str): The value at first.
    """

    label: str
    param: str
    options: dict[str, str]
    chosen: str


class Group(NamedTuple):
    """What a file shows: a heading, tables by their headings, and figures that follow
    one choice."""

    name: str
    file: str
    note: str = ""
    choice: Choice | None = None
    figures: Sequence[Figure] = ()
    tables: Mapping[str, Table] = {}
    more: Any = None


def percent(share: float | None, digits: int = 1) -> str:
    """RETURNS (str): 0.5 as "50.0 %"."""
    if share is None or not math.isfinite(share):
        return MISSING
    return f"{number(100 * share, digits)}{SPACE}%"


def number(value: float | None, digits: int = 0) -> str:
    """RETURNS (str): With commas between thousands."""
    if value is None or not math.isfinite(value):
        return MISSING
    rounded = round(value, digits) + 0.0  # no minus before a zero
    return f"{rounded:,.{digits}f}".replace("-", MINUS)


def perplexity(value: float) -> str:
    """RETURNS (str): With a digit after the point if it is below 1,000."""
    return number(value, 0 if value >= 1000 else 1)


def counted(n: int, name: str) -> str:
    return f"{n:,}{SPACE}{name}" + ("" if n == 1 else "s")


def layer_label(layer: str) -> str:
    return f"layer {layer}" if layer.isdigit() else layer


def language_of(text: str) -> str:
    """RETURNS (str): "ko" for a text with Hangul, otherwise nothing: no other language
    shows in its letters alone."""
    return "ko" if HANGUL.search(text) else ""


def mark_token(tokens: Sequence[str], position: int) -> Marked:
    """RETURNS (Marked): A token with those around it, cut where there are many."""
    start, end = max(0, position - CONTEXT), position + 1 + CONTEXT
    before = " ".join(tokens[start:position])
    after = " ".join(tokens[position + 1 : end])
    return Marked(
        ("… " if start else "") + before + (" " if before else ""),
        tokens[position],
        (" " if after else "") + after + (" …" if end < len(tokens) else ""),
        language_of(" ".join(tokens)),
    )
