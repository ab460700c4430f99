"""Compare the numpy engine with the torch engine: speed and start-up.

Both run in separate processes that take turns: only one computes at any time, and every
round measures both. See README.md.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from corpus import write_sentences
from random_models import write_model
from report import SINGLE, WHOLE
from workers import Worker

ROOT = Path(__file__).resolve().parents[1]
TEXT = ROOT / "assets" / "treebank" / "en" / "train.conllu"
BUNDLED = "en_elmo_sm"
ENGINES = ("torch", "numpy")
SETTLE = 0.2  # seconds before a timed call, until the other engine's threads are idle
# The name of each kind of measurement, sentences per call, and whether words are known.
KINDS = (
    ("batches", WHOLE, False),
    ("batches, words known", WHOLE, True),
    ("one sentence a call", SINGLE, False),
    ("one sentence a call, words known", SINGLE, True),
)
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, Block())
"""
# What is started: vectors in Python, and a pipeline. Thinc imports torch where it is
# installed, so torch is blocked for numpy.
STARTS = {
    "first vectors": "from spacy_elmo import load_bilm\n"
    "load_bilm('en_elmo_sm', engine={engine!r}).embed([['One', 'sentence']])",
    "first doc": "import spacy\nnlp = spacy.blank('en')\nnlp.add_pipe('elmo')\n"
    "nlp('One sentence')",
}


@dataclass
class Row:
    """The measurements of one kind.

    seconds (dict[str, list[float]]): The time of each round, by engine.
    n_tokens (int): The number of tokens; 0 for a start.
    """

    name: str
    n_tokens: int = 0
    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {engine: [] for engine in ENGINES}
    )

    def format(self) -> str:
        """Format the medians, their ratio and the raw figures of every round."""
        medians = {e: statistics.median(self.seconds[e]) for e in ENGINES}
        lines = [f"{self.name}: " + ", ".join(map(self._rate, ENGINES))]
        ratio = medians["torch"] / medians["numpy"]
        pairs = zip(*(self.seconds[engine] for engine in ENGINES))
        ratios = sorted(torch / numpy for torch, numpy in pairs)
        lines.append(
            f"  speed of numpy / torch: {ratio:.0%} of medians; by round "
            f"{ratios[0]:.0%} to {ratios[-1]:.0%}"
        )
        for engine in ENGINES:
            raw = " ".join(f"{seconds:.3f}" for seconds in self.seconds[engine])
            lines.append(f"  {engine} seconds: {raw}")
        return "\n".join(lines)

    def _rate(self, engine: str) -> str:
        median = statistics.median(self.seconds[engine])
        if not self.n_tokens:
            return f"{engine} {median:.2f} s"
        return f"{engine} {self.n_tokens / median:,.0f} words/s"


def measure_speed(
    source: str, threads: int, text: Path, lengths: list[int], args: argparse.Namespace
) -> list[Row]:
    """Measure all kinds with both engines.

    source (str): The biLM.
    threads (int): The number of threads that an engine may use.
    text (Path): A JSON file with the sentences, which the workers read.
    lengths (list[int]): The lengths of the sentences.
    """
    counts = {WHOLE: len(lengths), SINGLE: min(args.single, len(lengths))}
    rows = [Row(name, sum(lengths[: counts[batch]])) for name, batch, _ in KINDS]
    set_threads(threads)
    with ExitStack() as stack:
        workers: dict[tuple[str, bool], Worker] = {}
        for engine in ENGINES:
            for warm in (False, True):
                name = f"{engine}-{'warm' if warm else 'cold'}"
                worker = Worker(
                    name,
                    python=sys.executable,
                    script="ours_worker.py",
                    logs=args.workdir / "logs",
                )
                workers[engine, warm] = stack.enter_context(worker)
                settings = {"engine": engine, "warm": warm}
                worker.call("load", folder=source, text=str(text), **settings)
                worker.call("embed", count=len(lengths), batch=WHOLE)
        for number in range(args.rounds):
            for row, (_, batch, warm) in zip(rows, KINDS):
                # Every other round begins with the other engine, so that neither is
                # always first.
                for engine in ENGINES if number % 2 else ENGINES[::-1]:
                    worker = workers[engine, warm]
                    worker.call("prepare")
                    time.sleep(SETTLE)
                    answer = worker.call("embed", count=counts[batch], batch=batch)
                    row.seconds[engine].append(answer["seconds"])
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    return rows


def measure_starts(rounds: int) -> list[Row]:
    """Measure the time from the start of a process to its first vectors."""
    set_threads(1)
    rows = [Row(name) for name in STARTS]
    for number in range(-1, rounds):  # round -1 fills the disk cache
        for row, code in zip(rows, STARTS.values()):
            for engine in ENGINES if number % 2 else ENGINES[::-1]:
                program = code.format(engine=engine)
                if engine == "numpy":
                    program = BLOCK + program
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
                if number >= 0:
                    row.seconds[engine].append(time.perf_counter() - start)
    return rows


def set_threads(threads: int) -> None:
    """Set how many threads the processes that are started from now on may use."""
    for name in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--text", type=Path, default=TEXT, help="CoNLL-U, or one sentence per line")
    add("--sentences", type=int, default=400)
    add("--single", type=int, default=60, help="sentences for one sentence a call")
    add("--min-length", type=int, default=5)
    add("--max-length", type=int, default=60)
    add("--rounds", type=int, default=7)
    add("--sizes", nargs="+", default=["bundled", "small"])
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--start-rounds", type=int, default=5)
    add("--workdir", type=Path, help="where to keep models and logs")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        args.workdir = args.workdir or Path(temporary)
        sentences, text = write_sentences(args)
        lengths = [len(sentence) for sentence in sentences]
        n_distinct = len({word for sentence in sentences for word in sentence})
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
        print(
            f"{len(sentences)} sentences, {sum(lengths)} tokens, {n_distinct} distinct"
        )
        for size in args.sizes:
            bundled = size == "bundled"
            source = BUNDLED if bundled else str(write_model(size, args.workdir))
            for threads in args.threads:
                print(f"\n## {size} size, threads: {threads}", flush=True)
                for row in measure_speed(source, threads, text, lengths, args):
                    print(row.format(), flush=True)
        print("\n## Start-up: process start to first vectors, bundled size", flush=True)
        if args.start_rounds:
            for row in measure_starts(args.start_rounds):
                print(row.format(), flush=True)


if __name__ == "__main__":
    main()
