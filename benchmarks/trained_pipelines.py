"""Measure the scores and the speed of trained pipelines, and where their time goes.

    python benchmarks/trained_pipelines.py --dev dev.spacy PIPELINE... [--int8]

Each pipeline annotates the same words, one after another in every round. With one
thread, the time of the CPU is measured, which other programs disturb less. With --int8,
each pipeline with `elmo` is measured a second time with its LSTMs in 8 bits. The
figures of all rounds are printed after their medians.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus

SCORES = ("tag_acc", "pos_acc", "morph_acc", "dep_uas", "dep_las", "ents_f")
INT8 = {"components.elmo.precision": "int8"}


def load_pipelines(folders: list[Path], int8: bool) -> dict[str, Language]:
    """Load pipelines, each with a vocab of its own.

    RETURNS (dict[str, Language]): The pipelines by the names in the tables.
    """
    pipelines = {}
    for folder in folders:
        pipelines[str(folder)] = nlp = spacy.load(folder)
        if int8 and "elmo" in nlp.pipe_names:
            pipelines[f"{folder}, int8"] = spacy.load(folder, config=INT8)
    return pipelines


def measure_round(
    nlp: Language, sentences: list[list[str]], clock: Callable[[], float]
) -> dict[str, float]:
    """Measure the seconds of each component for all sentences."""
    docs = [Doc(nlp.vocab, words=words) for words in sentences]
    seconds = {}
    for name, pipe in nlp.pipeline:
        start = clock()
        docs = list(pipe.pipe(iter(docs), batch_size=nlp.batch_size))
        seconds[name] = clock() - start
    return seconds


def evaluate(nlp: Language, dev: Path) -> dict[str, float]:
    """Return the scores in percent, where the gold data has what a component sets."""
    scores = nlp.evaluate(list(Corpus(dev)(nlp)))
    found = {name: scores.get(name) for name in SCORES}
    return {name: 100 * score for name, score in found.items() if score is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pipelines", type=Path, nargs="+", help="folders")
    parser.add_argument("--dev", type=Path, required=True, help="gold docs, .spacy")
    parser.add_argument("--docs", type=int, default=1000, help="docs to time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    gold = DocBin().from_disk(args.dev).get_docs(spacy.blank("xx").vocab)
    sentences = [[token.text for token in doc] for doc in gold][: args.docs]
    n_words = sum(map(len, sentences))
    pipelines = load_pipelines(args.pipelines, args.int8)
    results = {
        name: {
            "scores": evaluate(nlp, args.dev),
            "n_words": n_words,
            "seconds": [],
        }
        for name, nlp in pipelines.items()
    }
    clock = time.process_time if args.threads == 1 else time.perf_counter
    for _ in range(args.rounds):  # the evaluation has warmed everything up
        for name, nlp in pipelines.items():
            forget_words(nlp)
            results[name]["seconds"].append(measure_round(nlp, sentences, clock))
    for name, result in results.items():
        print_result(name, result, n_words)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")


def forget_words(nlp: Language) -> None:
    """Empty the word cache, so that every round computes all words."""
    if "elmo" in nlp.pipe_names:
        nlp.get_pipe("elmo").model.shims[0].bilm.clear_cache()


def print_result(name: str, result: dict, n_words: int) -> None:
    totals = [sum(seconds.values()) for seconds in result["seconds"]]
    scores = ", ".join(f"{key} {value:.2f}" for key, value in result["scores"].items())
    print(f"\n{name}: {n_words / statistics.median(totals):,.0f} words/s; {scores}")
    for component in result["seconds"][0]:
        times = [seconds[component] for seconds in result["seconds"]]
        micro = 1e6 * statistics.median(times) / n_words
        print(f"  {component:>14} {micro:6.1f} microseconds a word")
    print("  seconds of each round:", " ".join(f"{total:.2f}" for total in totals))


if __name__ == "__main__":
    main()
