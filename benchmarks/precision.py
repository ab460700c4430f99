"""Measure the cost of storing a biLM in fewer bits: score a trained pipeline with the
stored biLM and with the same biLM in full precision. See README.md in this folder."""

import argparse
import json
from pathlib import Path

import spacy
from spacy.training import Corpus

from spacy_elmo.compare.jobs import evaluate
from spacy_elmo.pipeline.component import Elmo
from spacy_elmo.results import find_metrics


def measure(pipeline: Path, bilm: str, data: Path) -> dict[str, dict[str, float]]:
    """Compute each metric in percent with both biLMs.

    pipeline (Path): A pipeline that was trained with a biLM in fewer bits.
    bilm (str): The same biLM in full precision.
    data (Path): The docs to score, .spacy.
    RETURNS (dict): For each metric, the score with the biLM of the pipeline ("stored"),
        with `bilm` ("full"), and the difference ("cost").
    """
    nlp = spacy.load(pipeline)
    corpus = Corpus(data)
    stored = evaluate(nlp, corpus)
    for _, pipe in nlp.components:
        if isinstance(pipe, Elmo):
            pipe.initialize(lambda: list(corpus(nlp))[:1], bilm=bilm)
    full = evaluate(nlp, corpus)
    return {
        metric: {
            "stored": round(100 * stored[metric], 3),
            "full": round(100 * full[metric], 3),
            "cost": round(100 * (full[metric] - stored[metric]), 3),
        }
        for metric in find_metrics([stored, full])
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("pipeline", type=Path, help="trained with the biLM in fewer bits")
    add("bilm", help="the biLM with all its bits")
    add("data", type=Path, help="docs to score, .spacy")
    args = parser.parse_args()
    print(json.dumps(measure(args.pipeline, args.bilm, args.data), indent=2))


if __name__ == "__main__":
    main()
