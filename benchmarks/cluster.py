"""Measure how fast a Ray cluster on this machine embeds a text, against one process.

    python benchmarks/cluster.py TEXT [--bilm en_elmo_sm] [--workers 1 2]

The same sentences are embedded by the plain command's function, and by clusters with
different numbers of workers, one after another in every round. Each process has one
thread. Starting the cluster and its workers takes long, so the time until the first
part is finished is printed separately. Medians come first, then all rounds.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; workers have one too

from spacy_elmo.bilm import BiLMBase, load_bilm
from spacy_elmo.embedding.embed_file import PART, embed_file
from spacy_elmo.embedding.embed_folder import embed_folder
from spacy_elmo.parts.part_runs import Cluster
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.tokenizers import Tokenization


def time_run(
    bilm: BiLMBase, text: Path, workers: int | None, folder: Path
) -> tuple[float, float]:
    """Embed a tokenized text.

    workers (int | None): The number of workers; None for this process alone.
    RETURNS (tuple[float, float]): The seconds until the first part was finished, and
        those of the whole run.
    """
    load = partial(load_sentences, [str(text)], Tokenization(tokenized=True))
    problems: Counter[str] = Counter()
    times: list[float] = []
    start = time.perf_counter()

    def on_progress(n_done: int) -> None:
        times.append(time.perf_counter() - start)

    if workers is None:
        path = folder / "plain.parquet"
        embed_file(bilm, load(problems), path, on_progress=on_progress)
    else:
        embed_folder(
            bilm,
            load,
            folder / "parts",
            Cluster("local", workers),
            problems=problems,
            on_progress=on_progress,
        )
    return times[0], time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, help="one sentence per line, tokenized")
    parser.add_argument("--bilm", default="en_elmo_sm")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sentences", type=int, default=20 * PART)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    bilm = load_bilm(args.bilm)
    lines = args.text.read_text("utf8").split("\n")
    lines = [line for line in lines if line.strip()][: args.sentences]
    kinds: list[int | None] = [None, *args.workers]
    results: dict[str, list[tuple[float, float]]] = {name(kind): [] for kind in kinds}
    with tempfile.TemporaryDirectory() as temporary:
        text = Path(temporary) / "text.txt"
        text.write_text("\n".join(lines) + "\n", "utf8")
        for _ in range(args.rounds):
            for kind in kinds:
                with tempfile.TemporaryDirectory() as folder:
                    figures = time_run(bilm, text, kind, Path(folder))
                results[name(kind)].append(figures)
    print_results(results, sum(len(line.split()) for line in lines))
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")


def name(workers: int | None) -> str:
    return "plain" if workers is None else f"{workers} workers"


def print_results(results: dict[str, list[tuple[float, float]]], n_words: int) -> None:
    for kind, figures in results.items():
        first = statistics.median(first for first, _ in figures)
        whole = statistics.median(whole for _, whole in figures)
        # The first part includes the start of the cluster, so the rest tells the speed.
        rest = statistics.median(whole - first for first, whole in figures)
        print(f"\n{kind}: {n_words / whole:,.0f} words/s, {whole:.1f} s")
        print(f"  the first part after {first:.1f} s, the rest in {rest:.1f} s")
        print("  seconds of each round:", *(f"{whole:.2f}" for _, whole in figures))


if __name__ == "__main__":
    main()
