"""Measure how long the page of `spacy elmo explore` waits for each of its answers. See
README.md in this folder."""

import argparse
import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

SENSES = Path(__file__).parents[1] / "assets" / "senses" / "en.jsonl"
LIMIT = 100  # milliseconds


def start_page(source: str, index: Path | None) -> tuple[subprocess.Popen, str]:
    """Start the command.

    RETURNS (tuple[subprocess.Popen, str]): Its process, and the address of the page.
    """
    command = [sys.executable, "-u", "-m", "spacy", "elmo", "explore", source]
    command += ["--port", "0"]
    command += [] if index is None else ["--index", str(index)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf8")
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://[\d.:]+", line):
            return process, found[0]
    sys.exit("the page did not start")


def read_sentences(path: Path, n: int) -> list[str]:
    """Return the first sentences of a file of assets/senses, each of them once."""
    lines = path.read_text("utf8").splitlines()
    found = list(dict.fromkeys(json.loads(line)["text"] for line in lines))
    if len(found) < n:
        sys.exit(f"{path}: found {len(found)} sentences; expected {n}")
    return found[:n]


def ask(address: str, question: str, body: dict[str, Any]) -> float:
    """Ask one question.

    RETURNS (float): The milliseconds until the whole answer was there.
    """
    request = urllib.request.Request(
        f"{address}/api/{question}",
        json.dumps(body).encode("utf8"),
        {"Content-Type": "application/json"},
    )
    start = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        response.read()
    return 1000 * (time.perf_counter() - start)


def measure(address: str, sentences: list[str], corpus: bool) -> dict[str, list[float]]:
    """Ask all questions about each sentence, as the page does when it is typed and its
    second word is clicked at once: the first answer about the word has to wait until
    its layers are computed.

    RETURNS (dict[str, list[float]]): The milliseconds of all answers to each question.
    """
    with urllib.request.urlopen(f"{address}/api/info") as response:
        n_layers = json.load(response)["bilms"][0]["n_layers"]
    weights = [1.0] * n_layers
    found: dict[str, list[float]] = {}
    for sentence in sentences:
        text = {"text": sentence}
        word = {**text, "sentence": 0, "word": 1}
        questions = {
            "text": text,
            "neighbors": {**word, "weights": weights, "place": "typed"},
            "predictions": word,
            "surprisal": {**text, "sentence": 0},
            "heat-map": {**text, "first": 0, "second": 0, "weights": weights},
        }
        for name, body in questions.items():
            found.setdefault(name, []).append(ask(address, name, body))
        if corpus:
            body = {**questions["neighbors"], "place": "corpus"}
            found.setdefault("neighbors in the corpus", []).append(
                ask(address, "neighbors", body)
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--bilm", default="en_elmo_sm")
    add("--index", type=Path, help="a folder that `spacy elmo neighbors --index` wrote")
    add("--senses", type=Path, default=SENSES, help="a file of assets/senses")
    add("--sentences", type=int, default=100, help="how many")
    add("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    sentences = read_sentences(args.senses, 1 + args.sentences)
    process, address = start_page(args.bilm, args.index)
    try:
        measure(address, sentences[:1], args.index is not None)  # not counted
        found = measure(address, sentences[1:], args.index is not None)
    finally:
        process.terminate()
        process.wait()
    print(f"{args.bilm}, {args.sentences} sentences, milliseconds:")
    for name, values in found.items():
        late = sum(value > LIMIT for value in values)
        print(
            f"{name:>23}: median {median(values):6.1f}, largest {max(values):6.1f}, "
            f"{late} above {LIMIT}"
        )
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
