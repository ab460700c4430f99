"""The figures at the top of the page."""

import math
from statistics import fmean
from typing import NamedTuple

from ..results import Variant
from .figures import layer_label, percent, perplexity
from .load import Results
from .tasks import metric_label
from .words import best_layer, mean_accuracies


class Key(NamedTuple):
    """value (str): Empty in a note on those before it."""

    value: str
    note: str


def summary(results: Results) -> dict[str, list[Key]]:
    """RETURNS (dict[str, list[Key]]): By heading, if there is anything for it."""
    keys = {
        "Perplexity": _perplexity(results),
        "Best layer": _layers(results),
        "Errors reduced": _errors(results),
        "Senses found": _senses(results),
    }
    return {heading: found for heading, found in keys.items() if found}


def _perplexity(results: Results) -> list[Key]:
    """Those of texts that were evaluated; without them, of the held-out ones."""
    measured = [(found.name, found.data) for found in results.perplexity]
    if not measured:
        measured = [
            (found.name, found.data.best)
            for found in results.logs
            if found.data.best is not None
        ]
    keys = []
    for name, data in measured:
        both = f"forward {perplexity(data.forward)}, "
        both += f"backward {perplexity(data.backward)}"
        note = f"{name}: {both}" if len(measured) > 1 else both
        keys.append(Key(perplexity(data.mean), note))
    return keys


def _layers(results: Results) -> list[Key]:
    keys = []
    for found in results.probe:
        for task in found.data.tasks:
            best, baseline = task.best, task.baseline
            if best is None:
                continue
            note = f"{task.task}: {percent(best.accuracy)} right"
            if baseline is not None:
                note += f"; {baseline.name}: {percent(baseline.accuracy)}"
            keys.append(Key(best.name, note))
    return keys


def _errors(results: Results) -> list[Key]:
    """Of the variant that reduces most on the development data, over all scores of a
    file; how much it reduces on test data, if there is some."""
    keys = []
    for found in results.compare:
        best = max(found.data.full, key=_mean_reduction)
        known = best.test_error_reduction or best.error_reduction
        reductions = [
            Key(percent(reduction, 0), metric_label(metric))
            for metric in found.data.metrics
            if (reduction := known.get(metric)) is not None
        ]
        if reductions:
            keys += [*reductions, Key("", f"{found.name}: {best.title}")]
    return keys


def _mean_reduction(variant: Variant) -> float:
    known = [value for value in variant.error_reduction.values() if value is not None]
    return fmean(known) if known else -math.inf


def _senses(results: Results) -> list[Key]:
    keys = []
    for found in results.senses:
        layer = best_layer(found.data)
        value = percent(mean_accuracies(found.data)[layer], 0)
        majority = percent(fmean(word.majority for word in found.data.words), 0)
        note = f"{found.name}, {layer_label(layer)}; most frequent sense {majority}"
        keys.append(Key(value, note))
    return keys
