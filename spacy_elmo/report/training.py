"""Sections on the language model: curves of its pretraining, and perplexities."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, TypeVar

from ..results import Evaluation, Log, Perplexity, Step
from .charts import Rows, finite
from .figures import Cell, Choice, Figure, Group, Table, number, percent, perplexity
from .load import Found, Results
from .xy_charts import curves

MAX_POINTS = 200
DIRECTIONS = ["forward", "backward"]

RowT = TypeVar("RowT", Step, Evaluation)


def pretraining(found: Found[Log], place: int) -> Group:
    """place (int): Of the log among all, so that their choices do not mix."""
    log = found.data
    options = {"words": "words", "minutes": "minutes"}
    along = Choice("Against", f"along{place}", options, "words")
    figures = []
    if log.best is not None:
        figures.append(_perplexity(log, log.best, along))
    if log.steps:
        figures += _steps(log, along)
    last: list[Step | Evaluation] = [*log.steps[-1:], *log.evaluations[-1:]]
    words = max(row.words for row in last)
    minutes = max(row.seconds for row in last) / 60
    note = f"{number(words)} words in {number(minutes, 1)} minutes."
    return Group(found.name, found.file, note, along, figures)


def _perplexity(log: Log, best: Evaluation, along: Choice) -> Figure:
    names = [*DIRECTIONS, "mean"]
    kept = thin(log.evaluations)
    rows = [
        _row(part, {name: fmean(getattr(row, name) for row in part) for name in names})
        for part in kept
    ]
    first = log.evaluations[0]
    values = [row[name] for row in rows for name in names if row[name]]
    wide = bool(values) and max(values) > 4 * min(values)
    alt = (
        "Perplexity of the held-out text, forward, backward and their mean: the mean "
        f"goes from {perplexity(first.mean)} to {perplexity(best.mean)} at its best."
    )
    return Figure(
        "Perplexity of the held-out text" + (", logarithmic" if wide else ""),
        alt,
        curves(rows, names, along, format=",~f", log=wide),
        _table(rows, names, 1),
        _thinned(kept),
    )


def _steps(log: Log, along: Choice) -> list[Figure]:
    kept = thin(log.steps)
    losses: Rows = []
    rates: Rows = []
    speeds: Rows = []
    for part in kept:
        forward = fmean(row.forward_loss for row in part)
        backward = fmean(row.backward_loss for row in part)
        losses.append(_row(part, {"forward": forward, "backward": backward}))
        rates.append(_row(part, {"learning rate": part[-1].learn_rate}))
        speed = fmean(row.words_per_second for row in part)
        speeds.append(_row(part, {"words per second": speed}))
    first, last = log.steps[0], log.steps[-1]
    loss = (
        "Training loss of both directions: forward from "
        f"{number(first.forward_loss, 2)} to {number(last.forward_loss, 2)}, backward "
        f"from {number(first.backward_loss, 2)} to {number(last.backward_loss, 2)}."
    )
    highest = max(row.learn_rate for row in log.steps)
    rate = f"Learning rate: {highest:.2g} at most, {last.learn_rate:.2g} at the end."
    mean = fmean(row.words_per_second for row in log.steps)
    pace = f"Words per second: {number(mean)} on average."
    note = _thinned(kept)
    speed_names, rate_names = ["words per second"], ["learning rate"]
    return [
        Figure(
            "Training loss",
            loss,
            curves(losses, DIRECTIONS, along, format="~f"),
            _table(losses, DIRECTIONS, 3),
            note,
        ),
        Figure(
            "Learning rate",
            rate,
            curves(rates, rate_names, along, format="~g", zero=True),
            _table(rates, rate_names, None),
            note,
        ),
        Figure(
            "Speed, words per second",
            pace,
            curves(speeds, speed_names, along, format=",~f", zero=True),
            _table(speeds, speed_names, 0),
            note,
        ),
    ]


def thin(rows: Sequence[RowT]) -> list[Sequence[RowT]]:
    """RETURNS (list[Sequence[RowT]]): Rows in their order, in at most MAX_POINTS parts
    of about the same size."""
    n = min(len(rows), MAX_POINTS)
    bounds = [len(rows) * k // n for k in range(n + 1)]
    return [rows[start:end] for start, end in zip(bounds, bounds[1:])]


def _thinned(parts: Sequence[Sequence[RowT]]) -> str:
    largest = max(map(len, parts))
    return f"A point is the mean of up to {largest} rows." if largest > 1 else ""


def _row(part: Sequence[RowT], values: dict[str, float]) -> dict[str, Any]:
    end = part[-1]
    place = {"words": end.words, "minutes": finite(end.seconds / 60)}
    return {**place, **{name: finite(value) for name, value in values.items()}}


def _table(rows: Rows, names: list[str], digits: int | None) -> Table:
    """digits (int | None): None for those that a number needs."""

    def show(value: float | None) -> str:
        if digits is None and value is not None:
            return f"{value:.3g}"
        return number(value, digits or 0)

    cells: list[list[Cell]] = [
        [
            number(row["words"]),
            number(row["minutes"], 1),
            *(show(row[name]) for name in names),
        ]
        for row in rows
    ]
    return Table(["words", "minutes", *names], cells, len(names) + 2)


def perplexities(results: Results) -> Table | None:
    """RETURNS (Table | None): Of all texts, and the best of each pretraining."""
    entries: list[tuple[str, str, Perplexity]] = [
        (log.name, "held out, best", log.data.best)
        for log in results.logs
        if log.data.best is not None
    ]
    entries += [(each.name, "evaluated", each.data) for each in results.perplexity]
    rows: list[list[Cell]] = [
        [
            name,
            how,
            *map(perplexity, (data.forward, data.backward, data.mean)),
            number(data.n_tokens),
            percent(data.unknown_rate),
        ]
        for name, how, data in entries
    ]
    columns = ["model", "text", "forward", "backward", "mean", "words", "unknown"]
    return Table(columns, rows, 5) if rows else None
