"""The summary at the top of the page."""

import math
from statistics import fmean
from typing import NamedTuple

from ...results import VariantResult, metric_label
from ..formatting import format_percent, format_perplexity, layer_label
from ..load import Results
from .probe_section import find_baseline, find_best_layer
from .senses_section import find_best_sense_layer, mean_accuracies

MAX_FILES = 2  # under each heading


class KeyFigure(NamedTuple):
    """A number with a note.

    value (str): The number; empty if the note describes the key figures before it.
    """

    value: str
    note: str


Files = list[list[KeyFigure]]  # the key figures of each result file


def make_summary(results: Results) -> dict[str, list[KeyFigure]]:
    """Return the key figures below each heading: those of the first MAX_FILES files,
    because more would not fit on a screen. Headings without key figures are left
    out."""
    figures = {
        "Fewer errors than without ELMo": _summarize_comparisons(results),
        "Scores of trained pipelines": _summarize_scores(results),
        "Senses of words told apart": _summarize_senses(results),
        "Layer that predicts tags best": _summarize_probes(results),
        "Perplexity, lower is better": _summarize_perplexity(results),
    }
    return {
        heading: [figure for file in files[:MAX_FILES] for figure in file]
        + _count_rest(files[MAX_FILES:])
        for heading, files in figures.items()
        if files
    }


def _count_rest(files: Files) -> list[KeyFigure]:
    return [KeyFigure("", f"and {len(files)} more below")] if files else []


def _summarize_perplexity(results: Results) -> Files:
    """Return the perplexity of each text that was evaluated. If there are none, return
    the best perplexity of each pretraining."""
    measured = [(found.name, found.data) for found in results.perplexity]
    if not measured:
        measured = [
            (found.name, found.data.best)
            for found in results.logs
            if found.data.best is not None
        ]
    figures = []
    for name, data in measured:
        both = f"forward {format_perplexity(data.forward)}, "
        both += f"backward {format_perplexity(data.backward)}"
        note = f"{name}: {both}" if len(measured) > 1 else both
        figures.append([KeyFigure(format_perplexity(data.mean), note)])
    return figures


def _summarize_probes(results: Results) -> Files:
    files = []
    for found in results.probe:
        figures = []
        for task in found.data.tasks:
            best, baseline = find_best_layer(task), find_baseline(task)
            if best is None:
                continue
            note = f"{task.task}: accuracy {format_percent(best.accuracy)}"
            if baseline is not None:
                note += f"; {baseline.name}: {format_percent(baseline.accuracy)}"
            figures.append(KeyFigure(best.name, note))
        files += [figures] if figures else []
    return files


def _summarize_comparisons(results: Results) -> Files:
    """Choose the variant of each file that reduces errors most on the development data.
    Return its error reductions for the first and the last score, on the test data if
    there is any."""
    files = []
    for found in results.compare:
        best = max(found.data.full, key=_mean_reduction)
        known = best.test_error_reduction or best.error_reduction
        reductions = [
            KeyFigure(format_percent(reduction, 0), metric_label(metric))
            for metric in found.data.metrics
            if (reduction := known.get(metric)) is not None
        ]
        if reductions:
            shown = [reductions[0], *reductions[1:][-1:]]
            files.append([*shown, KeyFigure("", f"{found.name}: {best.title}")])
    return files


def _mean_reduction(variant: VariantResult) -> float:
    known = [value for value in variant.error_reduction.values() if value is not None]
    return fmean(known) if known else -math.inf


def _summarize_scores(results: Results) -> Files:
    """Return the first and the last score of each pipeline."""
    files = []
    for found in results.scores:
        figures = [
            KeyFigure(format_percent(value), metric_label(metric))
            for metric, value in found.data.scores.items()
        ]
        if figures:
            shown = [figures[0], *figures[1:][-1:]]
            files.append([*shown, KeyFigure("", found.name)])
    return files


def _summarize_senses(results: Results) -> Files:
    figures = []
    for found in results.senses:
        layer = find_best_sense_layer(found.data)
        value = format_percent(mean_accuracies(found.data)[layer], 0)
        majority = format_percent(fmean(word.majority for word in found.data.words), 0)
        note = f"{found.name}, {layer_label(layer)}; most frequent sense: {majority}"
        figures.append([KeyFigure(value, note)])
    return figures
