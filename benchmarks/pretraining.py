"""Measure how fast our loop and a plain PyTorch loop train a biLM, in turns, with the
full and the sampled softmax. With --tokenizing, measure instead how fast raw text is
made into a corpus for training. See README.md in this folder."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from pretraining_parts import format_parts, measure_parts
from pretraining_systems import SETTINGS, Apart, Ours, Setting, make_trainer, timed

from spacy_elmo.pretrain.corpus import Corpus, build_corpus
from spacy_elmo.pretrain.initial_bilm import make_bilm
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.text.tokenizers import Tokenization

WARM_UP = 2  # unmeasured steps
SGEMM_TIMES = 3
SHORT = "ours, bfloat16"  # only measured if the CPU supports it
# The values say whether a system reads the windows of OneWindow instead of Epochs.
OURS = {"ours": False, "ours, one window": True}
PLAIN = {"plain": False, "plain, one window": True}
# Compared systems. In the last pair the plain one has the easier task.
PAIRS = [
    ("ours", "plain"),
    ("ours, one window", "plain, one window"),
    ("ours", "plain, one window"),
]
DEMO = Path(__file__).parents[1] / "configs" / "pretrain_demo.cfg"


@dataclass
class Report:
    """The measurements of one setting. n_distinct, seconds and flops have one number
    per system and round, losses one per step; parts is from measure_parts."""

    setting: Setting
    n_tokens: int  # tokens read in a round
    n_distinct: dict[str, list[float]]  # mean number of distinct words per window
    seconds: dict[str, list[float]] = field(default_factory=dict)
    losses: dict[str, list[float]] = field(default_factory=dict)
    flops: dict[str, list[float]] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, float]:
        return {
            name: self.n_tokens / median(self.seconds[name])
            for name in (*OURS, SHORT, *PLAIN)
            if name in self.seconds
        }

    @property
    def ratios(self) -> dict[str, float]:
        return {f"{a} to {b}": self.rates[a] / self.rates[b] for a, b in PAIRS}

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tokens_per_second": self.rates, "ratios": self.ratios}


def measure(
    setting: Setting, corpus: Corpus, workdir: Path, args: argparse.Namespace
) -> Report:
    """Measure all systems in turns. Every other round has the reverse order."""
    loops = {
        name: Ours(setting, corpus, workdir, one_window=one)
        for name, one in OURS.items()
    }
    plain = {name: Apart(setting, corpus, one) for name, one in PLAIN.items()}
    if torch.cpu._is_avx512_bf16_supported():
        loops[SHORT] = Ours(setting, corpus, workdir, "bfloat16")
    left, right = torch.randn(2, setting.sgemm, setting.sgemm)
    n_tokens = args.steps * setting.batch * setting.window
    report = Report(setting, n_tokens, {})
    systems: list[tuple[str, Callable[[int], float], int]] = [
        *(
            (name, partial(timed, loop.step), args.steps)
            for name, loop in loops.items()
        ),
        *((name, system.run, args.steps) for name, system in plain.items()),
        ("sgemm", partial(timed, lambda: torch.mm(left, right)), SGEMM_TIMES),
    ]
    for _, run, _ in systems:
        run(WARM_UP)
    for number in range(args.rounds):
        for name in OURS:
            texts = loops[name].read(args.steps)
            distinct = [len(set(words)) for words in texts]
            report.n_distinct.setdefault(name, []).append(float(np.mean(distinct)))
            report.flops.setdefault(name, []).append(setting.flops(texts))
        for name, run, times in systems if number % 2 else systems[::-1]:
            report.seconds.setdefault(name, []).append(run(times))
    report.losses = {name: list(loop.losses) for name, loop in loops.items()}
    for name, system in plain.items():
        report.losses[name] = system.losses
        system.stop()
    report.parts = measure_parts(loops["ours"].step, args.steps)
    return report


def print_report(report: Report) -> None:
    setting, seconds = report.setting, report.seconds
    print(
        f"\n=== {setting.size}, {setting.name}; batch {setting.batch}, window "
        f"{setting.window}"
    )
    sgemm = SGEMM_TIMES * 2 * setting.sgemm**3 / median(seconds["sgemm"])
    for name, tokens in report.rates.items():
        rounds = " ".join(f"{s:.2f}" for s in seconds[name])
        print(f"{name:>17} {tokens:10.0f} tokens/s   seconds: {rounds}")
    if SHORT in seconds:
        each = [o / s for o, s in zip(seconds["ours"], seconds[SHORT])]
        print(
            f"  {SHORT} to ours: {report.rates[SHORT] / report.rates['ours']:.2f}   "
            f"({min(each):.2f}-{max(each):.2f})"
        )
    for (a, b), (name, ratio) in zip(PAIRS, report.ratios.items()):
        each = [s / o for s, o in zip(seconds[b], seconds[a])]
        print(f"  {name}: {ratio:.2f}   ({min(each):.2f}-{max(each):.2f})")
    for name in OURS:
        rate = median(f / s for f, s in zip(report.flops[name], seconds[name]))
        print(
            f"  {name}: {np.mean(report.n_distinct[name]):.0f} distinct words a window,"
            f" {rate / 1e9:.1f} GFLOP/s, {rate / sgemm:.0%} of sgemm"
        )
    rounds = " ".join(f"{s:.3f}" for s in seconds["sgemm"])
    print(f"  sgemm: {sgemm / 1e9:.0f} GFLOP/s   seconds: {rounds}")
    for name, losses in report.losses.items():
        n = max(1, len(losses) // 4)
        first, last = np.mean(losses[:n]), np.mean(losses[-n:])
        print(
            f"  loss of {name}: {first:.2f} in the first {n} steps, {last:.2f} in the "
            f"last {n} of {len(losses)}"
        )
    print(format_parts(report.parts))


def measure_tokenizing(workdir: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure how many words and boundaries per second are written to a corpus by 1 and
    by 2 processes, and how many the demo is trained on, in turns."""
    config = load_config(DEMO, {"paths.raw_text": str(args.text)})

    def build(name: str, n_process: int) -> Corpus:
        tokenization = Tokenization(config.corpus.lang)
        text, folder = [str(args.text)], workdir / name
        return build_corpus(
            text, folder, tokenization=tokenization, n_process=n_process
        )[0]

    corpus = build("demo", 2)
    bilm, _ = make_bilm(config, corpus)
    trainer = make_trainer(config, bilm, corpus, workdir, [])
    timed(trainer.step, WARM_UP)
    seconds: dict[str, list[float]] = {"1 process": [], "2 processes": [], "demo": []}
    for number in range(args.rounds):
        for n_process, name in enumerate(("1 process", "2 processes"), 1):
            folder = f"{number}-{n_process}"
            seconds[name].append(timed(partial(build, folder, n_process)))
            shutil.rmtree(workdir / folder)
        seconds["demo"].append(timed(trainer.step, args.demo_steps))
    n_read = len(corpus.train.tokens) + len(corpus.dev.tokens)
    training = config.training
    n_trained = args.demo_steps * training.batch_size * training.window
    rates = {
        name: (n_trained if name == "demo" else n_read) / median(times)
        for name, times in seconds.items()
    }
    return {"tokens": n_read, "seconds": seconds, "tokens_per_second": rates}


def print_tokenizing(result: dict[str, Any]) -> None:
    rates = result["tokens_per_second"]
    print(f"\n=== tokenizing {result['tokens']:,} words and boundaries")
    for name, rate in rates.items():
        rounds = " ".join(f"{s:.2f}" for s in result["seconds"][name])
        what = "training the demo" if name == "demo" else f"writing it, {name}"
        print(
            f"{what:>26} {rate:10.0f} tokens/s, {rate / rates['demo']:6.1f} times the "
            f"demo   seconds: {rounds}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--text", type=Path, required=True, help="raw text, .txt or .txt.gz")
    add("--sizes", nargs="+", choices=list(SETTINGS), default=["small"])
    add("--rounds", type=int, default=5)
    add("--steps", type=int, default=5, help="updates in a round")
    add("--tokenizing", action="store_true", help="measure this instead")
    add("--demo-steps", type=int, default=50, help="updates of the demo in a round")
    add("--json", type=Path, metavar="OUT", help="write all figures to this file")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"{platform.platform()}, torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, load at the start {load:.2f}"
    )
    figures: dict[str, Any] = {"load": load, "steps": args.steps}
    with tempfile.TemporaryDirectory() as folder:
        workdir = Path(folder)
        try:
            if args.tokenizing:
                figures["tokenizing"] = measure_tokenizing(workdir, args)
                print_tokenizing(figures["tokenizing"])
            else:
                corpus, _ = build_corpus(
                    [str(args.text)],
                    workdir / "corpus",
                    tokenization=Tokenization("en"),
                    dev_share=0.0,
                )
                figures["settings"] = []
                for setting in (s for size in args.sizes for s in SETTINGS[size]):
                    report = measure(setting, corpus, workdir, args)
                    print_report(report)
                    figures["settings"].append(report.as_json())
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
