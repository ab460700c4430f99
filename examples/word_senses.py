"""One word, several senses: does its vector depend on what it means?

Reads the sentences of assets/senses in which a word occurs, takes its vector in each,
and compares them: first as a small table of cosines, then by asking which sentence is
nearest to which, by the word, by what its neighbours say of it, and by what the rest of
the sentence does.

    python examples/word_senses.py --word bank
    python examples/word_senses.py --lang ko --word 눈
"""

import argparse
from pathlib import Path

import numpy as np
import spacy
import srsly

from spacy_elmo.analysis.layer_vectors import unit
from spacy_elmo.analysis.sense_map import context, rest_of_sentence

ASSETS = Path(__file__).parents[1] / "assets"
# Words between spaces and punctuation: the same in every language, nothing to install.
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
SHOWN = 3  # sentences of each sense in the table


def main() -> None:
    args = parse_args()
    nlp = spacy.blank(args.lang, config=TOKENIZER)
    nlp.add_pipe("elmo", config={"bilm": args.bilm})
    records = list(srsly.read_jsonl(ASSETS / "senses" / f"{args.lang}.jsonl"))
    found = [record for record in records if record["word"] == args.word]
    if not found:
        words = ", ".join(dict.fromkeys(record["word"] for record in records))
        raise SystemExit(f"'{args.word}' is not in the sense set, which has {words}")

    vectors, contexts, sentences = [], [], []
    for doc, record in zip(nlp.pipe(record["text"] for record in found), found):
        # In Korean this is the noun with its particle.
        span = doc.char_span(record["start"], record["end"], alignment_mode="expand")
        layers = doc._.elmo.layers.transpose(1, 0, 2)  # (n_layers + 1, n_tokens, width)
        vectors.append(layers[args.layer, span.start : span.end].mean(0))
        rows = list(range(span.start, span.end))
        contexts.append(context(layers, rows)[0])
        sentences.append(rest_of_sentence(layers, rows)[-1])
    cosines = compare(vectors)

    senses = [record["sense"] for record in found]
    shown = [n for n, sense in enumerate(senses) if senses[:n].count(sense) < SHOWN]
    print(f"Cosines of '{args.word}' in {len(shown)} sentences\n")
    print(" " * 20 + "".join(f"{k:6}" for k in range(1, len(shown) + 1)))
    for k, row in enumerate(shown, start=1):
        cells = "".join(f"{cosines[row, column]:6.2f}" for column in shown)
        print(f"{k:3} {senses[row]:16}{cells}")

    print("\nThe nearest two sentences of each sense")
    for sense in dict.fromkeys(senses):
        same = np.array([other == sense for other in senses])
        pairs = np.where(np.outer(same, same), without_self(cosines), -np.inf)
        first, second = np.unravel_index(pairs.argmax(), pairs.shape)
        print(f"\n  {pairs[first, second]:.2f}  {sense}")
        print(f"        {marked(found[first])}\n        {marked(found[second])}")

    n = len(senses)
    chance = sum(senses.count(sense) - 1 for sense in senses) / (n - 1)
    print(f"\nNearest to a sentence is one of the same sense, of {n}:")
    print(f"{chance:4.0f} by chance")
    for found_by, what in (
        (cosines, "by the word in its context"),
        (compare(contexts), "by layer 1 of its neighbours, without the word"),
        (compare(sentences), "by the top layer of all other words"),
    ):
        print(f"{count_right(found_by, senses):4} {what}")
    if args.lang == "ko":
        print("In Korean the particle on a noun, which is part of the token, hides its")
        print("sense: vectors of the same particle are near each other.")


def compare(vectors: list) -> np.ndarray:
    """RETURNS (np.ndarray): Cosines, (n_sentences, n_sentences)."""
    units = unit(np.array(vectors))
    return units @ units.T


def without_self(cosines: np.ndarray) -> np.ndarray:
    """RETURNS (np.ndarray): The same in which nobody is their own neighbour."""
    return np.where(np.eye(len(cosines), dtype=bool), -np.inf, cosines)


def count_right(cosines: np.ndarray, senses: list) -> int:
    """RETURNS (int): How many are nearest to one of the same sense."""
    nearest = without_self(cosines).argmax(1)
    return sum(senses[n] == sense for n, sense in zip(nearest, senses))


def marked(record: dict) -> str:
    """RETURNS (str): The sentence with the word in brackets."""
    text, start, end = record["text"], record["start"], record["end"]
    return f"{text[:start]}[{text[start:end]}]{text[end:]}"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", default="en", choices=["en", "ko"])
    parser.add_argument("--word", help="in assets/senses; by default play or 눈")
    parser.add_argument("--bilm", help="what load_bilm takes")
    parser.add_argument("--layer", type=int, default=-1, help="by default the top")
    args = parser.parse_args()
    args.word = args.word or {"en": "play", "ko": "눈"}[args.lang]
    return args


if __name__ == "__main__":
    main()
