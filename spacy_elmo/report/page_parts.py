"""The parts of the page: tables, charts with their data, and choices of the reader."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class MarkedText(NamedTuple):
    """A text in which a word is marked.

    lang (str): The language of the text; empty if it is not known.
    """

    before: str
    word: str
    after: str
    lang: str = ""


class TwoLines(NamedTuple):
    """A number, and a remark in small print below it."""

    main: str
    below: str


Cell = str | MarkedText | TwoLines


class Table(NamedTuple):
    """A table whose first column names the rows.

    numeric (int): How many columns have numbers; these are the last ones.
    """

    columns: list[str]
    rows: list[list[Cell]]
    numeric: int = 0


class Figure(NamedTuple):
    """A chart.

    alt (str): A sentence that describes the chart for readers who cannot see it.
    spec (dict[str, Any]): The chart in Vega-Lite.
    table (Table): The same data as a table.
    note (str): A remark below the chart.
    """

    title: str
    alt: str
    spec: dict[str, Any]
    table: Table
    note: str = ""


class Choice(NamedTuple):
    """Radio buttons that set a parameter of charts.

    param (str): The name of the parameter.
    options (dict[str, str]): For each value of the parameter, the label of its button.
    chosen (str): The value that is chosen at first.
    """

    label: str
    param: str
    options: dict[str, str]
    chosen: str


class Group(NamedTuple):
    """The part of the page that shows one result file.

    name (str): The heading.
    file (str): The path of the file.
    choice (Choice | None): A choice that applies to all figures.
    tables (Mapping[str, Table]): For each heading, the table below it.
    more (Any): Other data, which only the template of the section uses.
    """

    name: str
    file: str
    note: str = ""
    choice: Choice | None = None
    figures: Sequence[Figure] = ()
    tables: Mapping[str, Table] = {}
    more: Any = None
