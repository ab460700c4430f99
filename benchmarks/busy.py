"""Measure how long a call with one sentence takes, on a quiet and on a busy machine.

    python benchmarks/busy.py [--bilm NAME] [--rounds 5] [--busy 2] [--threads 1 2]

Quiet and busy rounds alternate. In a busy one, other processes compute without a pause.
Each sentence has new words, so that nothing is in the word cache. All figures are
printed as they were measured, then their medians.
"""

import argparse
import multiprocessing
import statistics
import time

WORDS = 20  # of each sentence
CALLS = 20  # of each round


def spin() -> None:
    """Compute until the process is ended."""
    n = 0
    while True:
        n += 1


def make_sentence(number: int) -> list[str]:
    return [f"word{number}{chr(97 + k)}" for k in range(WORDS)]


def measure(bilm_name: str, n_threads: int, n_rounds: int, n_busy: int) -> None:
    """Print the milliseconds of each call, and their medians and maxima."""
    import torch

    from spacy_elmo import load_bilm

    torch.set_num_threads(n_threads)
    bilm = load_bilm(bilm_name)
    number = 0
    for _ in range(5):  # the first calls prepare the engine
        bilm.embed([make_sentence(number)])
        number += 1
    found: dict[str, list[float]] = {"quiet": [], "busy": []}
    for round_ in range(2 * n_rounds):
        kind = "busy" if round_ % 2 else "quiet"
        context = multiprocessing.get_context("spawn")
        others = [context.Process(target=spin) for _ in range(n_busy)]
        if kind == "busy":
            for other in others:
                other.start()
            time.sleep(1)
        times = []
        for _ in range(CALLS):
            sentence = make_sentence(number)
            number += 1
            start = time.perf_counter()
            bilm.embed([sentence])
            times.append(1000 * (time.perf_counter() - start))
        if kind == "busy":
            for other in others:
                other.kill()
                other.join()
        found[kind] += times
        print(f"{n_threads} threads, {kind}:", " ".join(f"{t:.1f}" for t in times))
    for kind, times in found.items():
        print(
            f"{n_threads} threads, {kind}: median {statistics.median(times):.1f} ms, "
            f"longest {max(times):.1f} ms"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bilm", default="en_elmo_sm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=2, help="processes that compute")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    for n_threads in args.threads:
        measure(args.bilm, n_threads, args.rounds, args.busy)
