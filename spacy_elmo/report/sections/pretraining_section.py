"""The section on pretraining: curves of perplexity, loss, learning rate and speed."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, TypeVar

from ...results import EvaluationRow, StepRow
from ..charts.base import Rows, round_finite
from ..charts.xy import curve_chart
from ..formatting import format_number, format_perplexity
from ..load import PretrainingLog, ResultFile
from ..page_parts import Cell, Choice, Figure, Group, Table

MAX_POINTS = 200
DIRECTIONS = ["forward", "backward"]

RowT = TypeVar("RowT", StepRow, EvaluationRow)


def make_pretraining_group(found: ResultFile[PretrainingLog], index: int) -> Group:
    """Make the figures of a pretraining.

    index (int): The number of the log. It makes the name of the choice unique, so that
        each log has a separate choice.
    """
    log = found.data
    options = {"words": "words", "minutes": "minutes"}
    along = Choice("Progress in", f"along{index}", options, "words")
    figures = []
    if log.best is not None:
        figures.append(_perplexity_figure(log, log.best, along))
    if log.steps:
        figures += _step_figures(log, along)
    last: list[StepRow | EvaluationRow] = [*log.steps[-1:], *log.evaluations[-1:]]
    words = max(row.words for row in last)
    minutes = max(row.seconds for row in last) / 60
    note = f"{format_number(words)} words in {format_number(minutes, 1)} minutes."
    return Group(found.name, found.file, note, along, figures)


def _perplexity_figure(
    log: PretrainingLog, best: EvaluationRow, along: Choice
) -> Figure:
    names = [*DIRECTIONS, "mean"]
    parts = split_evenly(log.evaluations)
    rows = [
        _make_row(part, {name: fmean(getattr(r, name) for r in part) for name in names})
        for part in parts
    ]
    first = log.evaluations[0]
    values = [row[name] for row in rows for name in names if row[name]]
    logarithmic = bool(values) and max(values) > 4 * min(values) > 0
    alt = (
        "Perplexity of the development text, forward, backward and their mean: the "
        f"mean falls from {format_perplexity(first.mean)} to "
        f"{format_perplexity(best.mean)} at its best."
    )
    scale = " (logarithmic scale)" if logarithmic else ""
    return Figure(
        f"Perplexity of the development text{scale}",
        alt,
        curve_chart(rows, names, along, format=",~f", log=logarithmic),
        _make_table(rows, names, 1),
        _describe_means(parts),
    )


def _step_figures(log: PretrainingLog, along: Choice) -> list[Figure]:
    parts = split_evenly(log.steps)
    losses: Rows = []
    rates: Rows = []
    speeds: Rows = []
    for part in parts:
        forward = fmean(row.forward_loss for row in part)
        backward = fmean(row.backward_loss for row in part)
        losses.append(_make_row(part, {"forward": forward, "backward": backward}))
        rates.append(_make_row(part, {"learning rate": part[-1].learn_rate}))
        speed = fmean(row.words_per_second for row in part)
        speeds.append(_make_row(part, {"words per second": speed}))
    first, last = log.steps[0], log.steps[-1]
    loss_alt = "Training loss of both directions: " + ", ".join(
        f"{name} from {format_number(start, 2)} to {format_number(end, 2)}"
        for name, start, end in (
            ("forward", first.forward_loss, last.forward_loss),
            ("backward", first.backward_loss, last.backward_loss),
        )
    )
    highest = max(row.learn_rate for row in log.steps)
    rate_alt = f"Learning rate: at most {highest:.2g}, in the end {last.learn_rate:.2g}"
    mean = fmean(row.words_per_second for row in log.steps)
    speed_alt = f"Words per second: {format_number(mean)} on average"
    note = _describe_means(parts)
    speed_names, rate_names = ["words per second"], ["learning rate"]
    return [
        Figure(
            "Training loss",
            f"{loss_alt}.",
            curve_chart(losses, DIRECTIONS, along, format="~f"),
            _make_table(losses, DIRECTIONS, 3),
            note,
        ),
        Figure(
            "Learning rate",
            f"{rate_alt}.",
            curve_chart(rates, rate_names, along, format="~g", zero=True),
            _make_table(rates, rate_names, None),
            note,
        ),
        Figure(
            "Speed in words per second",
            f"{speed_alt}.",
            curve_chart(speeds, speed_names, along, format=",~f", zero=True),
            _make_table(speeds, speed_names, 0),
            note,
        ),
    ]


def split_evenly(rows: Sequence[RowT]) -> list[Sequence[RowT]]:
    """Split rows into at most MAX_POINTS parts of about the same size."""
    n = min(len(rows), MAX_POINTS)
    bounds = [len(rows) * k // n for k in range(n + 1)]
    return [rows[start:end] for start, end in zip(bounds, bounds[1:])]


def _describe_means(parts: Sequence[Sequence[RowT]]) -> str:
    largest = max(map(len, parts))
    if largest == 1:
        return ""
    return f"Each point is the mean of up to {largest} rows of the log."


def _make_row(part: Sequence[RowT], values: dict[str, float]) -> dict[str, Any]:
    end = part[-1]
    x = {"words": end.words, "minutes": round_finite(end.seconds / 60)}
    return {**x, **{name: round_finite(value) for name, value in values.items()}}


def _make_table(rows: Rows, names: list[str], digits: int | None) -> Table:
    """Make a table of the data of a chart.

    digits (int | None): The number of decimals; None for three significant digits.
    """

    def show(value: float | None) -> str:
        if digits is None and value is not None:
            return f"{value:.3g}"
        return format_number(value, digits or 0)

    cells: list[list[Cell]] = [
        [
            format_number(row["words"]),
            format_number(row["minutes"], 1),
            *(show(row[name]) for name in names),
        ]
        for row in rows
    ]
    return Table(["words", "minutes", *names], cells, len(names) + 2)
