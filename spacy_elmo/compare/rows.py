"""From the results of all runs to the numbers of a table."""

import re
import statistics
from collections.abc import Sequence
from typing import Any

from .plan import Run
from .variants import BASELINE

METRICS = (
    "tag_acc",
    "pos_acc",
    "morph_acc",
    "lemma_acc",
    "dep_uas",
    "dep_las",
    "ents_f",
    "cats_macro_f",
    r"spans_.+_f",
)
Row = dict[str, Any]


def find_metrics(scores: Sequence[dict[str, float]]) -> list[str]:
    """RETURNS (list[str]): The scores that all have, of those that are shown."""
    return [
        name
        for pattern in METRICS
        for name in sorted(scores[0])
        if re.fullmatch(pattern, name) and all(name in other for other in scores)
    ]


def make_rows(
    runs: Sequence[Run], results: dict[str, Row], speeds: dict[str, float]
) -> list[Row]:
    """runs (Sequence[Run]): All runs. results (dict[str, Row]): Of each, by its name.
    speeds (dict[str, float]): Words a second, by the name of a run.
    RETURNS (list[Row]): One for each variant and share."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault((run.share, run.variant.name), []).append(run)
    metrics = find_metrics([results[run.name]["scores"] for run in runs])
    rows = []
    for (share, name), group in groups.items():
        found = [results[run.name] for run in group]
        base = groups.get((share, BASELINE))
        others = None if base is None or name == BASELINE else base
        row = {
            "name": name,
            "label": group[0].variant.label,
            "share": share,
            "seeds": [run.seed for run in group],
            "mixes": mean_mixes([result["mixes"] for result in found]),
            "words_per_second": next(
                (speeds[run.name] for run in group if run.name in speeds), None
            ),
        }
        for kind, reduction in (
            ("scores", "error_reduction"),
            ("test_scores", "test_error_reduction"),
        ):
            if found[0][kind] is None:
                continue
            row[kind] = {m: spread([r[kind][m] for r in found]) for m in metrics}
            row[reduction] = {
                metric: None
                if others is None
                else reduced(
                    row[kind][metric]["mean"],
                    statistics.fmean(results[o.name][kind][metric] for o in others),
                )
                for metric in metrics
            }
        rows.append(row)
    return rows


def spread(values: list[float]) -> Row:
    """RETURNS (Row): The mean and the sample standard deviation, if there is one."""
    return {
        "mean": statistics.fmean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else None,
        "values": values,
    }


def reduced(score: float, baseline: float) -> float | None:
    """RETURNS (float | None): By which share there are fewer errors than the
    baseline's; None if it had none."""
    return None if baseline >= 1 else (score - baseline) / (1 - baseline)


def mean_mixes(mixes: Sequence[list[Row]]) -> list[Row]:
    """mixes (Sequence[list[Row]]): What the tasks have learned with each seed."""
    return [
        {
            "task": same[0]["task"],
            "s": [statistics.fmean(shares) for shares in zip(*(m["s"] for m in same))],
            "gamma": statistics.fmean(mix["gamma"] for mix in same),
        }
        for same in zip(*mixes)
    ]
