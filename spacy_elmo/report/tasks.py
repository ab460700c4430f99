"""The section on tasks with and without ELMo."""

from itertools import accumulate
from typing import Any

from ..results import Compare, Score, Variant
from .charts import Rows, finite
from .figures import (
    MISSING,
    SPACE,
    Cell,
    Choice,
    Figure,
    Group,
    Pair,
    Table,
    counted,
    number,
    percent,
)
from .load import Found
from .row_charts import dots, stacked
from .xy_charts import against_data

METRICS = {
    "tag_acc": "Tags",
    "pos_acc": "Parts of speech",
    "morph_acc": "Morphology",
    "lemma_acc": "Lemmas",
    "dep_uas": "UAS",
    "dep_las": "LAS",
    "sents_f": "Sentences F",
    "ents_f": "Entities F",
    "cats_score": "Categories",
    "cats_macro_f": "Categories F",
    "spans_sc_f": "Spans F",
}


def metric_label(metric: str) -> str:
    return METRICS.get(metric, metric)


def compare(found: Found[Compare], place: int) -> Group:
    """place (int): Of the file among all, so that their choices do not mix."""
    data = found.data
    options = {metric: metric_label(metric) for metric in data.metrics}
    metric = Choice("Score", f"metric{place}", options, data.metrics[0])
    figures = [_scores(data, metric)]
    if len({variant.share for variant in data.variants}) > 1:
        figures.append(_against_data(data, metric))
    figures += [_mixes(variant) for variant in data.full if variant.mixes]
    seeds = max(len(variant.seeds) for variant in data.variants)
    note = f"Mean ± spread of {counted(seeds, 'seed')}." if seeds else ""
    choice = metric if len(options) > 1 else None
    tables = {"Scores": comparison_table(data)}
    if any(variant.test_scores for variant in data.full):
        tables = {"Development data": tables["Scores"]}
        tables["Test data"] = comparison_table(data, test=True)
    return Group(found.name, found.file, note, choice, figures, tables)


def comparison_table(data: Compare, *, test: bool = False) -> Table:
    columns = ["variant", *map(metric_label, data.metrics)]
    speed = any(variant.words_per_second for variant in data.full)
    rows: list[list[Cell]] = []
    for variant in data.full:
        row: list[Cell] = [variant.title]
        scores, reductions = variant.scores, variant.error_reduction
        if test:
            scores, reductions = variant.test_scores, variant.test_error_reduction
        for metric in data.metrics:
            score = score_text(scores.get(metric))
            row.append(Pair(score, fewer(reductions.get(metric))))
        rows.append(row + [number(variant.words_per_second)] * speed)
    columns += ["words per second"] * speed
    return Table(columns, rows, len(columns) - 1)


def fewer(reduction: float | None) -> str:
    """RETURNS (str): How many errors fewer, or more; empty if that is not known."""
    if reduction is None:
        return ""
    return percent(abs(reduction)) + (" more" if reduction < 0 else " fewer")


def score_text(score: Score | None) -> str:
    """RETURNS (str): In percent, such as "91.25 ± 0.10"."""
    if score is None:
        return MISSING
    spread = "" if score.spread is None else f" ± {100 * score.spread:.2f}"
    return f"{100 * score.mean:.2f}{spread}"


def share_text(share: float) -> str:
    """RETURNS (str): In percent, with as many digits as it needs."""
    return f"{100 * share:g}{SPACE}%"


def names_of(data: Compare) -> list[str]:
    return list(dict.fromkeys(variant.title for variant in data.variants))


def _entry(variant: Variant, metric: str) -> dict[str, Any]:
    score = variant.scores[metric]
    spread = score.spread or 0.0
    return {
        "metric": metric,
        "series": variant.title,
        "mean": finite(score.mean),
        "low": finite(score.mean - spread),
        "high": finite(score.mean + spread),
    }


def _scores(data: Compare, metric: Choice) -> Figure:
    means: Rows = []
    seeds: Rows = []
    cells: list[list[Cell]] = []
    for row, variant in enumerate(data.full):
        for name in data.metrics:
            score = variant.scores.get(name)
            if score is None:
                continue
            text = score_text(score)
            entry = {**_entry(variant, name), "row": row}
            means.append({**entry, "label": variant.title, "right": text})
            for value in score.values:
                place = {"metric": name, "row": row, "series": variant.title}
                seeds.append({**place, "value": finite(value)})
            values = ", ".join(f"{100 * value:.2f}" for value in score.values)
            cells.append([variant.title, metric_label(name), values or MISSING, text])
    main = data.metrics[0]
    parts = [
        f"{variant.title} {score_text(variant.scores.get(main))}"
        for variant in data.full
    ]
    return Figure(
        "Scores",
        f"{metric_label(main)} of each variant: {', '.join(parts)}.",
        dots(means, seeds, names_of(data), metric),
        Table(["variant", "score", "each seed", "mean ± spread"], cells, 2),
        "A small stroke is a seed, the point their mean, the line its spread.",
    )


def _against_data(data: Compare, metric: Choice) -> Figure:
    rows: Rows = []
    cells: list[list[Cell]] = []
    ordered = sorted(data.variants, key=lambda variant: variant.share)
    for variant in ordered:
        share = share_text(variant.share)
        for name in data.metrics:
            score = variant.scores.get(name)
            if score is not None:
                text = score_text(score)
                place = {"share": variant.share, "data": share, "score": text}
                rows.append({**_entry(variant, name), **place})
                cells.append([variant.title, metric_label(name), share, text])
    shares = sorted({variant.share for variant in data.variants})
    least, most = share_text(shares[0]), share_text(shares[-1])
    what = metric_label(data.metrics[0])
    alt = f"{what} of each variant with {least} to {most} of the training data."
    return Figure(
        "Scores against the amount of training data",
        alt,
        against_data(rows, names_of(data), metric),
        Table(["variant", "score", "data", "mean ± spread"], cells, 2),
    )


def _mixes(variant: Variant) -> Figure:
    rows: Rows = []
    cells: list[list[Cell]] = []
    n_layers = max(len(mix.s) for mix in variant.mixes)
    layers = [f"layer {layer}" for layer in range(n_layers)]
    for row, mix in enumerate(variant.mixes):
        ends = [0.0, *accumulate(mix.s)]
        for layer, share in enumerate(mix.s):
            rows.append(
                {
                    "row": row,
                    "label": mix.task,
                    "right": f"γ {mix.gamma:.2f}",
                    "series": layers[layer],
                    "value": finite(share),
                    "text": f"{share:.2f}",
                    "start": finite(ends[layer]),
                    "end": finite(ends[layer + 1]),
                    "rest": layer > 0,
                }
            )
        shares = [f"{share:.3f}" for share in mix.s]
        shares += [MISSING] * (n_layers - len(shares))
        cells.append([mix.task, *shares, f"{mix.gamma:.3f}"])
    parts = [
        f"{mix.task} " + ", ".join(f"{share:.2f}" for share in mix.s)
        for mix in variant.mixes
    ]
    return Figure(
        f"Layers in the mix: {variant.title}",
        f"Share s of each layer, the lowest first: {'; '.join(parts)}.",
        stacked(rows, layers),
        Table(["task", *layers, "gamma"], cells, n_layers + 1),
        "The share s of each layer, and the scale γ of all.",
    )
