"""The section on pipelines with and without ELMo."""

from itertools import accumulate
from typing import Any

from ...results import ComparisonResult, Score, VariantResult, metric_label
from ..charts.base import Rows, round_finite
from ..charts.horizontal import score_chart, stacked_chart
from ..charts.xy import data_chart
from ..formatting import MISSING, SPACE, format_count, format_number, format_percent
from ..load import ResultFile
from ..page_parts import Cell, Choice, Figure, Group, Table, TwoLines

MEAN = "mean ± standard deviation"


def make_comparison_group(found: ResultFile[ComparisonResult], index: int) -> Group:
    """Make the figures and tables of a comparison.

    index (int): The number of the file. It makes the name of the choice unique, so that
        each file has a separate choice.
    """
    data = found.data
    options = {metric: metric_label(metric) for metric in data.metrics}
    metric = Choice("Score", f"metric{index}", options, data.metrics[0])
    figures = [_score_figure(data, metric)]
    if len({variant.share for variant in data.variants}) > 1:
        figures.append(_data_figure(data, metric))
    figures += [_mix_figure(variant) for variant in data.full if variant.mixes]
    seeds = max(len(variant.seeds) for variant in data.variants)
    note = ""
    if seeds:
        count = format_count(seeds, "seed")
        note = f"Mean ± standard deviation of {count}." if seeds > 1 else f"{count}."
    choice = metric if len(options) > 1 else None
    tables = {"Scores": comparison_table(data)}
    if any(variant.test_scores for variant in data.full):
        tables = {"Development data": tables["Scores"]}
        tables["Test data"] = comparison_table(data, test=True)
    return Group(found.name, found.file, note, choice, figures, tables)


def comparison_table(data: ComparisonResult, *, test: bool = False) -> Table:
    """Make the table of all variants that were trained with the most data.

    test (bool): Whether to show the scores on the test data.
    """
    columns = ["pipeline", *map(metric_label, data.metrics)]
    has_speed = any(variant.words_per_second for variant in data.full)
    rows: list[list[Cell]] = []
    for variant in data.full:
        row: list[Cell] = [variant.title]
        scores, reductions = variant.scores, variant.error_reduction
        if test:
            scores, reductions = variant.test_scores, variant.test_error_reduction
        for metric in data.metrics:
            score = format_score(scores.get(metric))
            row.append(TwoLines(score, format_reduction(reductions.get(metric))))
        rows.append(row + [format_number(variant.words_per_second)] * has_speed)
    columns += ["words per second"] * has_speed
    return Table(columns, rows, len(columns) - 1)


def format_reduction(reduction: float | None) -> str:
    """Format the difference to the baseline, such as "5.0 % fewer errors".

    reduction (float | None): A share of the baseline's errors; negative if there are
        more errors.
    """
    if reduction is None:
        return ""
    more = "more" if reduction < 0 else "fewer"
    return f"{format_percent(abs(reduction))} {more} errors"


def format_score(score: Score | None) -> str:
    """Format a score in percent, such as "91.25 ± 0.10"."""
    if score is None:
        return MISSING
    spread = "" if score.spread is None else f" ± {100 * score.spread:.2f}"
    return f"{100 * score.mean:.2f}{spread}"


def format_share(share: float) -> str:
    """Format a share in percent, with as many digits as it needs."""
    return f"{100 * share:g}{SPACE}%"


def find_titles(data: ComparisonResult) -> list[str]:
    return list(dict.fromkeys(variant.title for variant in data.variants))


def _chart_row(variant: VariantResult, metric: str) -> dict[str, Any]:
    score = variant.scores[metric]
    spread = score.spread or 0.0
    return {
        "metric": metric,
        "series": variant.title,
        "mean": round_finite(score.mean),
        "low": round_finite(score.mean - spread),
        "high": round_finite(score.mean + spread),
    }


def _score_figure(data: ComparisonResult, metric: Choice) -> Figure:
    means: Rows = []
    seeds: Rows = []
    cells: list[list[Cell]] = []
    for row, variant in enumerate(data.full):
        for name in data.metrics:
            score = variant.scores.get(name)
            if score is None:
                continue
            text = format_score(score)
            entry = {**_chart_row(variant, name), "row": row}
            means.append({**entry, "label": variant.title, "right": text})
            for value in score.values:
                place = {"metric": name, "row": row, "series": variant.title}
                seeds.append({**place, "value": round_finite(value)})
            values = ", ".join(f"{100 * value:.2f}" for value in score.values)
            cells.append([variant.title, metric_label(name), values or MISSING, text])
    main = data.metrics[0]
    parts = [
        f"{variant.title} {format_score(variant.scores.get(main))}"
        for variant in data.full
    ]
    return Figure(
        "Scores",
        f"{metric_label(main)} of each variant: {', '.join(parts)}.",
        score_chart(means, seeds, find_titles(data), metric),
        Table(["pipeline", "score", "each seed", MEAN], cells, 2),
        "Strokes: single seeds. Point: their mean. Line: mean ± standard deviation.",
    )


def _data_figure(data: ComparisonResult, metric: Choice) -> Figure:
    rows: Rows = []
    cells: list[list[Cell]] = []
    ordered = sorted(data.variants, key=lambda variant: variant.share)
    for variant in ordered:
        share = format_share(variant.share)
        for name in data.metrics:
            score = variant.scores.get(name)
            if score is not None:
                text = format_score(score)
                place = {"share": variant.share, "data": share, "score": text}
                rows.append({**_chart_row(variant, name), **place})
                cells.append([variant.title, metric_label(name), share, text])
    shares = sorted({variant.share for variant in data.variants})
    least, most = format_share(shares[0]), format_share(shares[-1])
    what = metric_label(data.metrics[0])
    alt = f"{what} of each variant with {least} to {most} of the training data."
    return Figure(
        "Scores by amount of training data",
        alt,
        data_chart(rows, find_titles(data), metric),
        Table(["pipeline", "score", "training data", MEAN], cells, 2),
    )


def _mix_figure(variant: VariantResult) -> Figure:
    rows: Rows = []
    cells: list[list[Cell]] = []
    n_layers = max(len(mix.s) for mix in variant.mixes)
    layers = [f"layer {layer}" for layer in range(n_layers)]
    for row, mix in enumerate(variant.mixes):
        ends = [0.0, *accumulate(mix.s)]
        for layer, weight in enumerate(mix.s):
            rows.append(
                {
                    "row": row,
                    "label": mix.task,
                    "right": f"γ {mix.gamma:.2f}",
                    "series": layers[layer],
                    "value": round_finite(weight),
                    "text": f"{weight:.2f}",
                    "start": round_finite(ends[layer]),
                    "end": round_finite(ends[layer + 1]),
                    "rest": layer > 0,
                }
            )
        weights = [f"{weight:.3f}" for weight in mix.s]
        weights += [MISSING] * (n_layers - len(weights))
        cells.append([mix.task, *weights, f"{mix.gamma:.3f}"])
    parts = [
        f"{mix.task} " + ", ".join(f"{weight:.2f}" for weight in mix.s)
        for mix in variant.mixes
    ]
    return Figure(
        f"Layer weights: {variant.title}",
        f"Weight of each layer, the lowest first: {'; '.join(parts)}.",
        stacked_chart(rows, layers),
        Table(["component", *layers, "scale γ"], cells, n_layers + 1),
        "The weight of each layer, and the scale γ of the weighted sum.",
    )
