"""The section on perplexities."""

from ...results import Perplexity
from ..formatting import format_number, format_percent, format_perplexity
from ..load import Results
from ..page_parts import Cell, Table

DEVELOPMENT_TEXT = "development text, at the best evaluation"
EVALUATED_TEXT = "text given to evaluate"


def make_perplexity_table(results: Results) -> Table | None:
    """Make a table of the best perplexities of each pretraining, and the perplexities
    of all texts that were evaluated. Return None if there are none."""
    entries: list[tuple[str, str, Perplexity]] = [
        (log.name, DEVELOPMENT_TEXT, log.data.best)
        for log in results.logs
        if log.data.best is not None
    ]
    entries += [
        (found.name, EVALUATED_TEXT, found.data) for found in results.perplexity
    ]
    rows: list[list[Cell]] = [
        [
            name,
            text,
            *map(format_perplexity, (data.forward, data.backward, data.mean)),
            format_number(data.n_tokens),
            format_percent(data.unknown_rate),
        ]
        for name, text, data in entries
    ]
    columns = ["biLM", "measured on", "forward", "backward", "mean", "words"]
    return Table([*columns, "unknown words"], rows, 5) if rows else None
