"""Compare the vectors of a word with several senses: do they depend on the sense?

This script takes the sentences of assets/senses that contain a word, and compares the
vectors of the word in them. It prints a table of cosines, and then counts how often the
nearest sentence has the same sense: by the vector of the word, by the vectors of its
neighbors, and by those of all other words.

    python examples/word_senses.py --word bank
    python examples/word_senses.py --lang ko --word 눈
"""

import argparse
from pathlib import Path

import numpy as np
import spacy
import srsly

from spacy_elmo.analysis.layer_vectors import to_unit_length
from spacy_elmo.analysis.sense_map import context_vectors, sentence_vectors

ASSETS = Path(__file__).parents[1] / "assets"
# Splits at spaces and punctuation: works for every language, with nothing to install.
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
SHOWN = 3  # sentences per sense in the table


def main() -> None:
    args = parse_args()
    records = list(srsly.read_jsonl(ASSETS / "senses" / f"{args.lang}.jsonl"))
    found = [record for record in records if record["word"] == args.word]
    if not found:
        words = ", ".join(dict.fromkeys(record["word"] for record in records))
        raise SystemExit(
            f"'{args.word}' is not in the sense set; expected one of {words}"
        )

    nlp = spacy.blank(args.lang, config=TOKENIZER)
    nlp.add_pipe("elmo", config={"bilm": args.bilm})
    vectors, contexts, sentences = [], [], []
    for doc, record in zip(nlp.pipe(record["text"] for record in found), found):
        # A Korean token is a noun with its particle, so the span has to be expanded.
        span = doc.char_span(record["start"], record["end"], alignment_mode="expand")
        layers = doc._.elmo.layers.transpose(1, 0, 2)  # (n_layers + 1, n_tokens, width)
        vectors.append(layers[args.layer, span.start : span.end].mean(0))
        rows = list(range(span.start, span.end))
        contexts.append(context_vectors(layers, rows)[0])
        sentences.append(sentence_vectors(layers, rows)[-1])

    senses = [record["sense"] for record in found]
    cosines = compare(vectors)
    print_table(args.word, senses, cosines)
    print_pairs(found, cosines)
    print_accuracies(
        senses,
        {
            "by the word in its context": cosines,
            "by layer 1 of its neighbors, without the word": compare(contexts),
            "by the top layer of all other words": compare(sentences),
        },
    )
    if args.lang == "ko":
        print("In Korean the particle on a noun, which is part of the token, hides the")
        print("sense: vectors of words with the same particle are similar.")


def print_table(word: str, senses: list, cosines: np.ndarray) -> None:
    """Print the cosines between the first sentences of each sense."""
    shown = [n for n, sense in enumerate(senses) if senses[:n].count(sense) < SHOWN]
    print(f"Cosines of '{word}' in {len(shown)} sentences\n")
    print(" " * 20 + "".join(f"{k:6}" for k in range(1, len(shown) + 1)))
    for k, row in enumerate(shown, start=1):
        cells = "".join(f"{cosines[row, column]:6.2f}" for column in shown)
        print(f"{k:3} {senses[row]:16}{cells}")


def print_pairs(records: list, cosines: np.ndarray) -> None:
    """Print the most similar pair of sentences for each sense."""
    print("\nThe most similar two sentences of each sense")
    senses = [record["sense"] for record in records]
    for sense in dict.fromkeys(senses):
        same = np.array([other == sense for other in senses])
        pairs = np.where(np.outer(same, same), without_self(cosines), -np.inf)
        first, second = np.unravel_index(pairs.argmax(), pairs.shape)
        print(f"\n  {pairs[first, second]:.2f}  {sense}")
        print(
            f"        {mark_word(records[first])}\n        {mark_word(records[second])}"
        )


def print_accuracies(senses: list, cosines: dict[str, np.ndarray]) -> None:
    """Print in how many sentences the nearest sentence has the same sense."""
    n = len(senses)
    chance = sum(senses.count(sense) - 1 for sense in senses) / (n - 1)
    print(f"\nSentences whose nearest sentence has the same sense, of {n}:")
    print(f"{chance:4.0f} by chance")
    for name, values in cosines.items():
        nearest = without_self(values).argmax(1)
        right = sum(senses[k] == sense for k, sense in zip(nearest, senses))
        print(f"{right:4} {name}")


def compare(vectors: list) -> np.ndarray:
    """Return the cosines of all pairs of vectors, (n_sentences, n_sentences).

    vectors (list): One array (width,) per sentence.
    """
    units = to_unit_length(np.array(vectors))
    return units @ units.T


def without_self(cosines: np.ndarray) -> np.ndarray:
    """Set the diagonal to minus infinity, so that no sentence is nearest to itself."""
    return np.where(np.eye(len(cosines), dtype=bool), -np.inf, cosines)


def mark_word(record: dict) -> str:
    """Return the sentence with the word in brackets."""
    text, start, end = record["text"], record["start"], record["end"]
    return f"{text[:start]}[{text[start:end]}]{text[end:]}"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", default="en", choices=["en", "ko"])
    parser.add_argument("--word", help="a word in assets/senses; by default play or 눈")
    parser.add_argument(
        "--bilm", help="a biLM folder, file or bundled name; by default the bundled one"
    )
    parser.add_argument(
        "--layer", type=int, default=-1, help="by default the top layer"
    )
    args = parser.parse_args()
    args.word = args.word or {"en": "play", "ko": "눈"}[args.lang]
    return args


if __name__ == "__main__":
    main()
