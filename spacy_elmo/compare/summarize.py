"""Summarize the results of all runs as the rows of a table."""

import statistics
from collections.abc import Mapping, Sequence

from ..results import LayerMix, RunResult, Score, VariantResult, find_metrics
from .training_run import TrainingRun
from .variants import BASELINE


def summarize_runs(
    runs: Sequence[TrainingRun],
    results: Mapping[str, RunResult],
    speeds: Mapping[str, float],
) -> list[VariantResult]:
    """Average the results of all runs over the seeds.

    runs (Sequence[TrainingRun]): All runs.
    results (Mapping[str, RunResult]): The result of each run, by its name.
    speeds (Mapping[str, float]): Words per second, by the name of a run.
    RETURNS (list[VariantResult]): One for each variant and share of the data.
    """
    metrics = find_metrics([results[run.name].scores for run in runs])
    groups: dict[tuple[float, str], list[TrainingRun]] = {}
    for run in runs:
        groups.setdefault((run.share, run.variant.name), []).append(run)
    rows = []
    for (share, name), group in groups.items():
        found = [results[run.name] for run in group]
        row = VariantResult(
            name=name,
            label=group[0].variant.label,
            share=share,
            seeds=[run.seed for run in group],
            mixes=average_mixes([result.mixes for result in found]),
            words_per_second=next(
                (speeds[run.name] for run in group if run.name in speeds), None
            ),
            scores=_average(metrics, [result.scores for result in found]),
        )
        others = [results[run.name] for run in groups.get((share, BASELINE), [])]
        if name == BASELINE:
            others = []
        row.error_reduction = _compare(row.scores, [other.scores for other in others])
        tests = [result.test_scores for result in found if result.test_scores]
        if tests:
            # The test data may lack annotations that the development data have.
            row.test_scores = _average(
                [metric for metric in metrics if all(metric in x for x in tests)], tests
            )
            row.test_error_reduction = _compare(
                row.test_scores, [other.test_scores or {} for other in others]
            )
        rows.append(row)
    return rows


def reduce_errors(score: float, baseline: float) -> float | None:
    """Compute the reduction of errors relative to the baseline.

    score, baseline (float): The two scores, from 0 to 1.
    RETURNS (float | None): 0.2 means 20 % fewer errors. None if the baseline made no
        errors.
    """
    return None if baseline >= 1 else (score - baseline) / (1 - baseline)


def average_mixes(mixes: Sequence[list[LayerMix]]) -> list[LayerMix]:
    """Average the layer weights over seeds.

    mixes (Sequence[list[LayerMix]]): For each seed, the mixes of all components.
    """
    return [
        LayerMix(
            task=same[0].task,
            s=[statistics.fmean(weights) for weights in zip(*(mix.s for mix in same))],
            gamma=statistics.fmean(mix.gamma for mix in same),
        )
        for same in zip(*mixes)
    ]


def _average(
    metrics: Sequence[str], scores: Sequence[Mapping[str, float]]
) -> dict[str, Score]:
    averaged = {}
    for metric in metrics:
        values = [found[metric] for found in scores]
        averaged[metric] = Score(
            mean=statistics.fmean(values),
            spread=statistics.stdev(values) if len(values) > 1 else None,
            values=values,
        )
    return averaged


def _compare(
    scores: Mapping[str, Score], baseline: Sequence[Mapping[str, float]]
) -> dict[str, float | None]:
    """Compute the error reduction of each score.

    baseline (Sequence[Mapping[str, float]]): The baseline's scores for each seed; empty
        if there is no baseline to compare with.
    """
    return {
        metric: reduce_errors(
            score.mean, statistics.fmean(found[metric] for found in baseline)
        )
        if baseline and all(metric in found for found in baseline)
        else None
        for metric, score in scores.items()
    }
