"""The measurements of inference.py, as numbers and as text."""

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np

SINGLE = 1  # one sentence per call
WHOLE = 0  # the whole text in one call


@dataclass
class Measurement:
    """The timed passes of one system at one batch size. sentences, tokens and flops are
    those of one pass, and seconds has one number per pass."""

    system: str
    batch: int
    peer: bool
    sentences: int
    tokens: int
    flops: float | None = None
    peak_mb: float | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Return the tokens per second of each round."""
        return [self.tokens / seconds for seconds in self.seconds]

    @property
    def rate(self) -> float:
        """Return the tokens per second, from the median of the seconds."""
        return self.tokens / median(self.seconds)


@dataclass
class Agreement:
    """The differences between the vectors of two systems. Each list has one number per
    layer, with layer 0 (the word vectors) first."""

    first: str
    second: str
    max_difference: list[float]
    mean_cosine: list[float]
    lowest_cosine: list[float]
    n_tokens: int


@dataclass
class SizeReport:
    """All measurements with the model of one size."""

    size: str
    n_sentences: int
    n_single: int
    n_tokens: int
    n_distinct: int
    sgemm_flops: float
    sgemm_seconds: list[float] = field(default_factory=list)
    load_seconds: dict[str, float] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return all fields, and the median tokens per second of each measurement."""
        plain = asdict(self)
        for row, measurement in zip(
            plain["measurements"], self.measurements, strict=True
        ):
            row["tokens_per_second"] = measurement.rate
        return plain


def compare(
    first: str, a: list[np.ndarray], second: str, b: list[np.ndarray]
) -> Agreement:
    """Compare the vectors that two systems computed for the same sentences.

    first, second (str): The names of the systems.
    a, b (list[np.ndarray]): One array (n_layers + 1, n_tokens, width) per sentence. If
        one list is longer, the rest of it is ignored.
    """
    pairs = list(zip(a, b, strict=False))
    left = np.concatenate([x for x, _ in pairs], axis=1).astype(np.float64)
    right = np.concatenate([y for _, y in pairs], axis=1).astype(np.float64)
    norms = np.linalg.norm(left, axis=2) * np.linalg.norm(right, axis=2)
    cosine = (left * right).sum(axis=2) / norms  # (n_layers + 1, n_tokens)
    return Agreement(
        first,
        second,
        np.abs(left - right).max(axis=(1, 2)).tolist(),
        cosine.mean(axis=1).tolist(),
        cosine.min(axis=1).tolist(),
        left.shape[1],
    )


def fastest_peer(measurements: list[Measurement], single: bool) -> Measurement | None:
    """Find the fastest measurement of a peer.

    single (bool): Consider one sentence per call; otherwise only larger batches.
    """
    peers = [m for m in measurements if m.peer and (m.batch == SINGLE) == single]
    return max(peers, key=lambda m: m.rate, default=None)


def format_report(report: SizeReport) -> str:
    """Format the report of one size: two tables, the agreement of the vectors, and the
    raw figures."""
    sgemm = report.sgemm_flops / median(report.sgemm_seconds)
    lines = [
        f"\n=== {report.size}: {report.n_sentences} sentences, {report.n_tokens} "
        f"tokens, {report.n_distinct} distinct words; one sentence per call over the "
        f"first {report.n_single}",
        f"sgemm {sgemm / 1e9:.0f} GFLOP/s (median of the rounds)",
    ]
    for single, title in ((False, "batches"), (True, "one sentence per call")):
        lines += ["", *_table(report, single, sgemm, title)]
    lines += ["", "Agreement, by layer (0 = words):"]
    lines += [_agreement_line(agreement) for agreement in report.agreements]
    lines += ["", "Raw: tokens/s in each round"]
    lines += [_raw_line(m.system, m.batch, m.rates) for m in report.measurements]
    gflops = [report.sgemm_flops / seconds / 1e9 for seconds in report.sgemm_seconds]
    lines.append(_raw_line("sgemm GFLOP/s", None, gflops))
    loads = [f"{name} {seconds:.1f}" for name, seconds in report.load_seconds.items()]
    lines.append("Seconds to load: " + ", ".join(loads))
    return "\n".join(lines)


def _table(report: SizeReport, single: bool, sgemm: float, title: str) -> list[str]:
    """Format one line per system and batch size, with `*` after the batch size at which
    a system is fastest."""
    rows = [m for m in report.measurements if (m.batch == SINGLE) == single]
    peer = fastest_peer(rows, single)
    against = "no peer" if peer is None else f"{peer.system}, {_batch(peer.batch)}"
    lines = [
        f"{title}; ratio to the faster peer: {against}",
        f"{'system':<16}{'batch':>7}{'tokens/s':>10}{'ratio':>8}"
        f"{'(rounds)':>16}{'peak MB':>9}{'GFLOP/s':>9}{'of sgemm':>9}",
    ]
    for m in rows:
        best = max(r.rate for r in rows if r.system == m.system)
        batch = _batch(m.batch) + ("*" if m.rate == best else " ")
        line = f"{m.system:<16}{batch:>7}{m.rate:>10.0f}{_ratio(m, peer)}"
        line += f"{m.peak_mb:>9.0f}" if m.peak_mb is not None else f"{'-':>9}"
        if m.flops is not None:
            rate = m.flops / median(m.seconds)
            line += f"{rate / 1e9:>9.1f}{100 * rate / sgemm:>8.0f}%"
        lines.append(line)
    return lines


def _ratio(m: Measurement, peer: Measurement | None) -> str:
    """Format the ratio of the medians, then the lowest and highest ratio in a round."""
    if peer is None:
        return f"{'-':>8}{'':>16}"
    rounds = [own / other for own, other in zip(m.rates, peer.rates, strict=True)]
    spread = f"({min(rounds):.2f}-{max(rounds):.2f})"
    return f"{m.rate / peer.rate:>8.2f}{spread:>16}"


def _agreement_line(agreement: Agreement) -> str:
    differences = ", ".join(f"{x:.1e}" for x in agreement.max_difference)
    means = ", ".join(f"{x:.5f}" for x in agreement.mean_cosine)
    lowest = ", ".join(f"{x:.5f}" for x in agreement.lowest_cosine)
    return (
        f"{agreement.first} and {agreement.second} ({agreement.n_tokens} tokens): "
        f"largest difference {differences}; mean cosine {means} (lowest {lowest})"
    )


def _raw_line(name: str, batch: int | None, figures: list[float]) -> str:
    label = name if batch is None else f"{name}, {_batch(batch)}"
    return f"  {label:<26}" + " ".join(f"{figure:.1f}" for figure in figures)


def _batch(batch: int) -> str:
    return "all" if batch == WHOLE else str(batch)
