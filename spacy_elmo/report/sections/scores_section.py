"""The section on the scores of trained pipelines."""

import re

from ...results import PipelineScores, metric_label
from ..formatting import format_number, format_percent
from ..load import ResultFile, Results
from ..page_parts import Cell, Table

# What the percentage of each score counts, by the patterns of METRICS.
MEANINGS = {
    r"tag_acc": "words with the right tag",
    r"pos_acc": "words with the right part of speech",
    r"morph_acc": "words with all the right features, such as number and tense",
    r"lemma_acc": "words with the right base form",
    r"dep_uas": "words of which the word they depend on is right",
    r"dep_las": "words of which the kind of dependency is right, too",
    r"ents_f": "names that are found and right; high if few are missed or invented",
    r"cats_macro_f": "texts in the right category; each category counts the same",
    r"spans_(.+)_f": "spans that are found and right; high if few are missed or "
    "invented",
}


def make_scores_table(results: Results) -> Table | None:
    """Make a table of the scores of all trained pipelines. Return None if there are
    none."""
    rows = [row for found in results.scores for row in _make_rows(found)]
    columns = ["pipeline", "score", "what it counts", "result"]
    return Table(columns, rows, 1) if rows else None


def explain_metric(name: str) -> str:
    """Return what a score counts, by spaCy's name of the score."""
    return next(text for key, text in MEANINGS.items() if re.fullmatch(key, name))


def _make_rows(found: ResultFile[PipelineScores]) -> list[list[Cell]]:
    name, data = found.name, found.data
    rows: list[list[Cell]] = [
        [name, metric_label(metric), explain_metric(metric), format_percent(value)]
        for metric, value in data.scores.items()
    ]
    return [*rows, [name, "Speed", "words per second", format_number(data.speed)]]
