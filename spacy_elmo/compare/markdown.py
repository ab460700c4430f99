"""The numbers of a comparison as a page of tables."""

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def to_markdown(compared: Row) -> str:
    """compared (Row): As in compare.json."""
    rows, metrics = compared["variants"], compared["metrics"]
    largest = max(row["share"] for row in rows)
    full = [row for row in rows if row["share"] == largest]
    seeds = ", ".join(str(seed) for seed in full[0]["seeds"])
    parts = [
        f"# {compared['title']}",
        f"{compared['task']}. Dev data; means over seeds {seeds} in percent, ± standard"
        " deviation. In brackets: errors fewer than the baseline's, in percent. Speed:"
        " of predicting, with one thread.",
        score_table(full, metrics),
    ]
    if "test_scores" in full[0]:
        parts += ["## Test data", score_table(full, metrics, "test_")]
    if len(full) < len(rows):
        sizes = {size["share"]: size["words"] for size in compared["data"]}
        ordered = sorted(rows, key=lambda row: row["share"])
        table = [
            [f"{row['share']:.4g}", f"{sizes[row['share']]:,}", row["label"]]
            + [cell(row, metric) for metric in metrics]
            for row in ordered
            if any(row["name"] == other["name"] for other in rows if other is not row)
        ]
        header = ["share", "words", "", *metrics]
        parts += ["## Against the amount of training data", grid(header, table)]
    mixes = [(row["label"], mix) for row in full for mix in row["mixes"]]
    if mixes:
        table = [
            [label, mix["task"], shares(mix["s"]), f"{mix['gamma']:.3f}"]
            for label, mix in mixes
        ]
        header = ["", "task", "s_j, from the token vectors to the top", "gamma"]
        parts += ["## Weights of the layers", grid(header, table)]
    return "\n\n".join(parts) + "\n"


def score_table(rows: Sequence[Row], metrics: list[str], kind: str = "") -> str:
    """kind (str): "" for dev, "test_" for test data."""
    table = [
        [row["label"], *(cell(row, metric, kind) for metric in metrics), speed(row)]
        for row in rows
    ]
    return grid(["", *metrics, "words/s"], table)


def cell(row: Row, metric: str, kind: str = "") -> str:
    score = row[f"{kind}scores"][metric]
    text = f"{100 * score['mean']:.2f}"
    if score["spread"] is not None:
        text += f" ± {100 * score['spread']:.2f}"
    fewer = row[f"{kind}error_reduction"][metric]
    return text if fewer is None else f"{text} ({100 * fewer:.1f})"


def speed(row: Row) -> str:
    rate = row["words_per_second"]
    return "" if rate is None else f"{rate:,.0f}"


def shares(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def grid(header: list[str], rows: list[list[str]]) -> str:
    """RETURNS (str): A table in Markdown whose columns also stand below each other."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"
        for line in lines
    )
