"""Write the result of a comparison as tables in Markdown."""

from collections.abc import Mapping, Sequence

from ..results import ComparisonResult, Score, VariantResult, metric_label

INTRODUCTION = (
    "Scores on the development data in percent: mean over seeds {seeds} ± standard "
    "deviation. In brackets: by how many percent the baseline's errors are reduced. "
    "Words per second: the speed of prediction with one thread."
)


def format_markdown(table: ComparisonResult) -> str:
    """Write all tables of a comparison."""
    full, metrics = table.full, table.metrics
    seeds = ", ".join(map(str, full[0].seeds))
    parts = [
        f"# {table.title}",
        f"Components: {table.task}. " + INTRODUCTION.format(seeds=seeds),
        score_table(full, metrics),
    ]
    if full[0].test_scores:
        parts += ["## Test data", score_table(full, metrics, test=True)]
    if len(full) < len(table.variants):
        parts += ["## Scores by amount of training data", share_table(table)]
    mixes = [(row.label, mix) for row in full for mix in row.mixes]
    if mixes:
        cells = [
            [
                label,
                mix.task,
                " ".join(f"{weight:.3f}" for weight in mix.s),
                f"{mix.gamma:.3f}",
            ]
            for label, mix in mixes
        ]
        header = ["variant", "component", "weights s_j, from layer 0 to the top"]
        parts += ["## Layer weights", format_grid([*header, "scale gamma"], cells)]
    return "\n\n".join(parts) + "\n"


def score_table(
    rows: Sequence[VariantResult], metrics: Sequence[str], *, test: bool = False
) -> str:
    """Write one row for each variant, with its scores on development or test data."""
    table = [
        [row.label, *format_scores(row, metrics, test=test), format_speed(row)]
        for row in rows
    ]
    header = ["variant", *map(metric_label, metrics), "words per second"]
    return format_grid(header, table)


def share_table(table: ComparisonResult) -> str:
    """Write the scores of the variants that were trained with several shares of the
    training data, the smallest share first."""
    sizes = {size.share: size.words for size in table.data}
    names = [row.name for row in table.variants]
    cells = [
        [f"{row.share:.4g}", f"{sizes[row.share]:,}", row.label]
        + format_scores(row, table.metrics)
        for row in sorted(table.variants, key=lambda row: row.share)
        if names.count(row.name) > 1
    ]
    labels = [metric_label(metric) for metric in table.metrics]
    header = ["share of training data", "training words", "variant", *labels]
    return format_grid(header, cells)


def format_scores(
    row: VariantResult, metrics: Sequence[str], *, test: bool = False
) -> list[str]:
    scores: Mapping[str, Score] = row.test_scores if test else row.scores
    reductions = row.test_error_reduction if test else row.error_reduction
    texts = []
    for metric in metrics:
        if metric not in scores:
            texts.append("")
            continue
        score, reduction = scores[metric], reductions[metric]
        text = f"{100 * score.mean:.2f}"
        if score.spread is not None:
            text += f" ± {100 * score.spread:.2f}"
        if reduction is not None:
            text += f" ({100 * reduction:.1f})"
        texts.append(text)
    return texts


def format_speed(row: VariantResult) -> str:
    rate = row.words_per_second
    return "" if rate is None else f"{rate:,.0f}"


def format_grid(header: list[str], rows: list[list[str]]) -> str:
    """Write a table in Markdown whose columns are also aligned as plain text."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"
        for line in lines
    )
