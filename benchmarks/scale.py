"""Measure what pretraining costs as the text and the biLM grow, and predict the
largest of each from the smaller ones before measuring it. See README.md in this folder.
"""

import argparse
import gzip
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pretraining_systems import Ours, Setting, timed

from spacy_elmo.pretrain.corpus import Corpus, build_corpus
from spacy_elmo.text.tokenizers import Tokenization

WARM_UP = 1  # unmeasured steps
SGEMM, SGEMM_TIMES = 4096, 3
SAMPLED = {"n_words": 200_000, "n_samples": 8192}


def read_lines(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf8") as file:
            yield from file


def cut_text(paths: list[Path], n_words: int, target: Path) -> int:
    """Write the first lines with about n_words words between spaces, and return the
    number of words that they have."""
    found = 0
    with target.open("w", encoding="utf8") as file:
        for line in read_lines(paths):
            file.write(line)
            found += len(line.split())
            if found >= n_words:
                break
    return found


def _prepare(text: str, folder: str, results: "Queue[dict[str, float]]") -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    corpus, _ = build_corpus([text], Path(folder), tokenization=Tokenization("en"))
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put(
        {
            "tokens": len(corpus.train.tokens) + len(corpus.dev.tokens),
            "distinct": len(corpus.words),
            "seconds": seconds,
            "before_mb": before / 1024,
            "peak_mb": after / 1024,
        }
    )


def prepare(text: Path, folder: Path) -> dict[str, float]:
    """Prepare a corpus in a process of its own, whose peak memory is then known."""
    spawn = get_context("spawn")
    results: Queue[dict[str, float]] = spawn.Queue()
    process = spawn.Process(target=_prepare, args=(str(text), str(folder), results))
    process.start()
    result = results.get()
    process.join()
    return result


def predict_preparation(done: list[dict[str, float]], n_tokens: float) -> list[float]:
    """Predict a larger preparation from those that were measured.

    RETURNS (list[float]): The distinct words, which grow by a power of the tokens; the
        seconds, in proportion to the tokens; and the peak memory in MB, which grows
        with the distinct words.
    """
    first, last = done[0], done[-1]
    power = math.log(last["distinct"] / first["distinct"])
    power /= math.log(last["tokens"] / first["tokens"])
    distinct = last["distinct"] * (n_tokens / last["tokens"]) ** power
    seconds = last["seconds"] * n_tokens / last["tokens"]
    slope = (last["peak_mb"] - first["peak_mb"]) / (
        last["distinct"] - first["distinct"]
    )
    return [distinct, seconds, last["peak_mb"] + slope * (distinct - last["distinct"])]


def measure_preparation(args: argparse.Namespace, workdir: Path) -> list[Any]:
    print("=== preparation, 1 process; seconds of the CPU")
    done: list[dict[str, float]] = []
    for number, size in enumerate(args.words):
        text = workdir / f"{number}.txt"
        n_words = cut_text(args.text, size, text)
        if number > 1:  # a word between spaces becomes so many tokens
            n_tokens = n_words * done[-1]["tokens"] / done[-1]["words"]
            distinct, seconds, peak = predict_preparation(done, n_tokens)
            print(
                f"  predicted: {distinct:,.0f} distinct words, {seconds:.0f} s, "
                f"{peak:,.0f} MB"
            )
        result = prepare(text, workdir / f"corpus{number}")
        result["words"] = n_words
        done.append(result)
        print(
            f"{n_words:,} words between spaces, {result['tokens']:,.0f} tokens: "
            f"{result['distinct']:,.0f} distinct words, {result['seconds']:.1f} s "
            f"({result['tokens'] / result['seconds']:,.0f} tokens/s), "
            f"{result['peak_mb']:,.0f} MB ({result['before_mb']:,.0f} at the start)",
            flush=True,
        )
        text.unlink()
    return done


def measure_step(size: str, corpus: Corpus, workdir: Path, args: Any) -> dict[str, Any]:
    """Measure steps with the sampled softmax, in alternation with products of square
    matrices, and a checkpoint."""
    setting = Setting(size, **SAMPLED, sgemm=SGEMM)
    ours = Ours(setting, corpus, workdir)
    left, right = torch.randn(2, SGEMM, SGEMM)
    timed(ours.step, WARM_UP)
    n_tokens = setting.batch * setting.window
    seconds, flops, products = [], [], []
    for _ in range(args.rounds):
        flops.append(setting.flops(ours.read(1)) / n_tokens)
        seconds.append(timed(ours.step))
        products.append(timed(lambda: torch.mm(left, right), SGEMM_TIMES))
    bilm = ours.trainer.bilm
    n_weights = {
        name: sum(p.numel() for part, p in bilm.named_parameters() if match in part)
        for name, match in (("all", ""), ("softmax", "softmax."))
    }
    saved = timed(ours.trainer.save)
    files = [path for path in workdir.rglob("*") if "checkpoints" in path.parts]
    return {
        "size": size,
        "weights": n_weights["all"],
        "softmax": n_weights["softmax"],
        "mflop": median(flops) / 1e6,
        "words_per_second": n_tokens / median(seconds),
        "seconds": seconds,
        "sgemm": SGEMM_TIMES * 2 * SGEMM**3 / median(products) / 1e9,
        "sgemm_seconds": products,
        "checkpoint_mb": sum(p.stat().st_size for p in files if p.is_file()) / 1e6,
        "checkpoint_seconds": saved,
    }


def measure_steps(args: argparse.Namespace, workdir: Path) -> list[Any]:
    print(f"\n=== steps, {torch.get_num_threads()} threads")
    text = workdir / "steps.txt"
    cut_text(args.text, args.step_words, text)
    corpus, _ = build_corpus(
        [str(text)], workdir / "steps", tokenization=Tokenization("en"), dev_share=0.0
    )
    done: list[dict[str, Any]] = []
    for size in args.sizes:
        with tempfile.TemporaryDirectory(dir=workdir) as folder:
            result = measure_step(size, corpus, Path(folder), args)
        gflops = result["words_per_second"] * result["mflop"] / 1e3
        result["share"] = gflops / result["sgemm"]
        if done:
            rate = done[-1]["share"] * result["sgemm"] * 1e3 / result["mflop"]
            print(f"  predicted by the share of sgemm before: {rate:,.0f} words/s")
        done.append(result)
        print(
            f"{size}: {result['weights'] / 1e6:.1f}M weights, of which softmax "
            f"{result['softmax'] / 1e6:.1f}M; {result['mflop']:.0f} MFLOP a word, "
            f"{result['words_per_second']:,.0f} words/s, {gflops:.0f} GFLOP/s, "
            f"{result['share']:.0%} of sgemm ({result['sgemm']:.0f}); checkpoint "
            f"{result['checkpoint_mb']:,.0f} MB in {result['checkpoint_seconds']:.1f} s"
        )
        print("  seconds: " + " ".join(f"{s:.2f}" for s in result["seconds"]))
        print(
            "  sgemm seconds: " + " ".join(f"{s:.2f}" for s in result["sgemm_seconds"])
        )
        sys.stdout.flush()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--text", type=Path, nargs="+", required=True, help=".txt or .txt.gz, in order")
    add("--words", type=int, nargs="*", default=[10**6, 4 * 10**6, 16 * 10**6])
    add("--sizes", nargs="*", default=["small", "medium", "original"])
    add("--step-words", type=int, default=200_000, help="words of the text for steps")
    add("--rounds", type=int, default=5)
    add("--json", type=Path, metavar="OUT", help="write all figures to this file")
    args = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        if args.words:
            figures["preparation"] = measure_preparation(args, Path(folder))
        if args.sizes:
            figures["steps"] = measure_steps(args, Path(folder))
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
