"""Measure how fast ELMo vectors are computed by spacy_elmo, AllenNLP and simple_elmo.

Each system runs in a separate process. All processes stay alive and take turns: only
one computes at any time, and every round measures all of them. See README.md.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from corpus import write_sentences
from random_models import SIZES, cnn_flops, lstm_flops, write_model
from report import SINGLE, WHOLE, Measurement, SizeReport, compare, format_report
from workers import Worker, WorkerError

OURS, INT8, CACHED = "ours float32", "ours int8", "ours cached"
NUMPY = "ours numpy"
PEER_CHECK = 8  # sentences in the comparison with a peer
INT8_CHECK = 64  # sentences in the comparison of int8 with float32
SETTLE = 0.3  # seconds before a timed call, until the last system's threads are idle
SGEMM_SIZE, SGEMM_TIMES = 4096, 3


@dataclass(frozen=True)
class System:
    """A system to measure.

    script (str): The file name of its worker in benchmarks/peers.
    python (str): The Python interpreter that runs the worker.
    batches (tuple[int, ...]): Batch sizes, ascending; see `SINGLE` and `WHOLE`.
    settings (dict): Arguments of the worker's command "load".
    peer (bool): Whether this is another program, not spacy_elmo.
    """

    name: str
    script: str
    python: str
    batches: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    peer: bool = False


def list_systems(args: argparse.Namespace) -> list[System]:
    """List spacy_elmo in four variants, then the peers (AllenNLP and simple_elmo)
    whose interpreters were given."""
    own, sizes = sys.executable, tuple(sorted(args.batch_sizes))
    script = "ours_worker.py"
    systems = [
        System(OURS, script, own, (SINGLE, WHOLE), {"precision": "float32"}),
        System(NUMPY, script, own, (SINGLE, WHOLE), {"engine": "numpy"}),
        System(INT8, script, own, (SINGLE, WHOLE), {"precision": "int8"}),
        System(CACHED, script, own, (SINGLE, *sizes, WHOLE), {"warm": True}),
    ]
    peers = (
        ("allennlp", "--allennlp-python", args.allennlp_python),
        ("simple_elmo", "--tensorflow-python", args.tensorflow_python),
    )
    for name, option, python in peers:
        if python is None:
            print(f"{name} is left out: no {option} given", flush=True)
            continue
        settings = {"max_batch": max(sizes)}
        batches = (SINGLE, *sizes)
        systems.append(
            System(name, f"{name}_worker.py", python, batches, settings, peer=True)
        )
    return systems


class SizeRun:
    """The measurement of all systems on a model of one size."""

    def __init__(
        self,
        size: str,
        *,
        systems: list[System],
        sentences: list[list[str]],
        text: Path,
        args: argparse.Namespace,
    ) -> None:
        """
        sentences (list[list[str]]): The sentences to embed.
        text (Path): A JSON file with the same sentences, which the workers read.
        """
        self.size, self.systems, self.sentences = size, systems, sentences
        self.text, self.args = text, args
        self.workdir: Path = args.workdir
        self.workers: dict[str, Worker] = {}
        self.report = SizeReport(
            size=size,
            n_sentences=len(sentences),
            n_single=min(args.single, len(sentences)),
            n_tokens=sum(map(len, sentences)),
            n_distinct=len({word for sentence in sentences for word in sentence}),
            sgemm_flops=2.0 * SGEMM_SIZE**3 * SGEMM_TIMES,
        )

    def run(self) -> SizeReport:
        """Start fresh workers, compare their vectors, warm up, then measure."""
        with ExitStack() as stack:
            sgemm = stack.enter_context(self._worker("sgemm", sys.executable))
            machine = sgemm.call("load", size=SGEMM_SIZE)["value"]
            used = f"torch {machine['torch']}, {machine['threads']} threads"
            print(f"{self.size}: {used}", flush=True)
            self._load(stack)
            self._compare_vectors()
            self._warm_up()
            for number in range(self.args.rounds):
                self._round(number, sgemm)
        return self.report

    def _worker(self, name: str, python: str, script: str | None = None) -> Worker:
        logs = self.workdir / "logs" / self.size
        script = script or f"{name}_worker.py"
        return Worker(name, python=python, script=script, logs=logs)

    def _load(self, stack: ExitStack) -> None:
        folder = write_model(self.size, self.workdir)
        for system in self.systems:
            worker = self._worker(system.name, system.python, system.script)
            self.workers[system.name] = stack.enter_context(worker)
            answer = worker.call(
                "load", folder=str(folder), text=str(self.text), **system.settings
            )
            self.report.load_seconds[system.name] = answer["seconds"]
            _progress(f"{self.size}: {system.name} loaded")

    def _compare_vectors(self) -> None:
        """Compare int8 and the peers with our float32, and the peers with each other.

        This must be the first batch after loading, because a peer starts each later
        batch from the LSTM states of the batch before.
        """
        names = [s.name for s in self.systems if s.name != CACHED]
        vectors: dict[str, list[np.ndarray]] = {}
        for name in names:
            path = self.workdir / "vectors.npz"
            count = INT8_CHECK if name in (OURS, NUMPY, INT8) else PEER_CHECK
            self.workers[name].call("save", count=count, path=str(path))
            with np.load(path) as arrays:
                vectors[name] = [arrays[f"arr_{i}"] for i in range(len(arrays))]
            path.unlink()
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                if first != INT8:
                    agreement = compare(first, vectors[first], second, vectors[second])
                    self.report.agreements.append(agreement)

    def _warm_up(self) -> None:
        """Run one unmeasured pass at each batch size, which fills the caches.

        Batch sizes ascend, so the memory peak after a pass is that of its batch size.
        There is no peak for single sentences, because the comparison before needed more
        memory. A peak includes the vectors of the text, so ours is taken after the text
        that the peers get, and only then follows a pass over the longer text. (After
        its first batch size, the cached variant has run over the longer text already.)
        """
        options = SIZES[self.size]
        for system in self.systems:
            for batch in system.batches:
                count = self._count(True, batch)
                answer = self._time(system.name, batch, count)
                if not system.peer:
                    count = self._count(False, batch)
                    self._time(system.name, batch, count)
                used = self.sentences[:count]
                n_tokens = sum(map(len, used))
                m = Measurement(system.name, batch, system.peer, count, n_tokens)
                m.peak_mb = None if batch == SINGLE else answer["peak_mb"]
                if not system.peer:
                    m.flops = lstm_flops(options, used)
                    if system.name != CACHED:
                        m.flops += cnn_flops(options, used)
                self.report.measurements.append(m)
            _progress(f"{self.size}: {system.name} is warm")

    def _round(self, number: int, sgemm: Worker) -> None:
        """Measure every system and batch size once. Each round begins with another one,
        so that none is always first."""
        time.sleep(SETTLE)
        answer = sgemm.call("multiply", times=SGEMM_TIMES)
        self.report.sgemm_seconds.append(answer["seconds"])
        rows = self.report.measurements
        start = number * len(rows) // self.args.rounds
        for m in rows[start:] + rows[:start]:
            answer = self._time(m.system, m.batch, m.sentences)
            m.seconds.append(answer["seconds"])
        _progress(f"{self.size}: round {number + 1} of {self.args.rounds} done")

    def _time(self, name: str, batch: int, count: int) -> dict[str, Any]:
        worker = self.workers[name]
        worker.call("prepare")
        time.sleep(SETTLE)
        return worker.call("embed", count=count, batch=batch)

    def _count(self, peer: bool, batch: int) -> int:
        """Return the number of sentences to embed. The speed of the peers does not
        depend on the length of the text, so they get fewer."""
        if batch == SINGLE:
            return self.report.n_single
        limit = self.args.peer_sentences if peer else self.report.n_sentences
        return min(limit, self.report.n_sentences)


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _positive(lowest: int = 1) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < lowest:
            raise argparse.ArgumentTypeError(f"{text} is less than {lowest}")
        return int(text)

    return number


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add, whole = parser.add_argument, _positive()
    add("--text", type=Path, required=True, help="CoNLL-U, or one sentence per line")
    add("--sizes", nargs="+", choices=list(SIZES), default=["original", "small"])
    add("--sentences", type=whole, default=2000, help="sentences to embed")
    add("--peer-sentences", type=whole, default=500, help="how many the peers get")
    add("--single", type=whole, default=50, help="sentences embedded one per call")
    add("--min-length", type=whole, default=10, help="minimum of tokens per sentence")
    add("--max-length", type=whole, default=40, help="maximum of tokens per sentence")
    add("--rounds", type=whole, default=5, help="timed passes of everything")
    add(
        "--batch-sizes",
        nargs="+",
        type=_positive(2),
        default=[32, 64, 128],
        help="for the peers and the cached stream; the best one of each counts",
    )
    add("--allennlp-python", metavar="PATH", help="interpreter that has AllenNLP")
    add("--tensorflow-python", metavar="PATH", help="interpreter that has simple_elmo")
    add("--workdir", type=Path, help="keep models and logs here (default: temporary)")
    add("--json", type=Path, metavar="OUT", help="write all figures to this file")
    return parser.parse_args()


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure all sizes, print their reports and collect the figures."""
    sentences, text = write_sentences(args)
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load at the start {load:.2f}")
    systems = list_systems(args)
    sizes = []
    for size in args.sizes:
        size_run = SizeRun(
            size, systems=systems, sentences=sentences, text=text, args=args
        )
        report = size_run.run()
        print(format_report(report), flush=True)
        sizes.append(report.as_json())
    machine = {"platform": platform.platform(), "cpus": os.cpu_count(), "load": load}
    return {"machine": machine, "rounds": args.rounds, "sizes": sizes}


def main() -> int:
    """Run the benchmark and return the exit code: 1 if the input is bad or a system
    fails, otherwise 0."""
    args = parse_arguments()
    with ExitStack() as stack:
        if args.workdir is None:
            args.workdir = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            figures = run(args)
        except (OSError, ValueError, WorkerError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
