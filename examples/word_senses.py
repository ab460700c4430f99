"""One word, several senses: does its vector depend on what it means?

Reads the sentences of assets/senses in which a word occurs, takes its vector in each,
and compares them: first as a small table of cosines, then by asking which sentence is
nearest to which.

    python examples/word_senses.py --word bank
    python examples/word_senses.py --lang ko --word 눈
"""

import argparse
from pathlib import Path

import numpy as np
import spacy
import srsly

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

    vectors = []
    for doc, record in zip(nlp.pipe(record["text"] for record in found), found):
        # In Korean this is the noun with its particle.
        span = doc.char_span(record["start"], record["end"], alignment_mode="expand")
        vectors.append(doc._.elmo.layers[span.start : span.end, args.layer].mean(0))
    units = np.array([vector / np.linalg.norm(vector) for vector in vectors])
    cosines = units @ units.T  # (n_sentences, n_sentences)

    senses = [record["sense"] for record in found]
    shown = [n for n, sense in enumerate(senses) if senses[:n].count(sense) < SHOWN]
    print(f"Cosines of '{args.word}' in {len(shown)} sentences\n")
    print(" " * 20 + "".join(f"{k:6}" for k in range(1, len(shown) + 1)))
    for k, row in enumerate(shown, start=1):
        cells = "".join(f"{cosines[row, column]:6.2f}" for column in shown)
        print(f"{k:3} {senses[row]:16}{cells}")

    np.fill_diagonal(cosines, -np.inf)  # nobody is their own neighbour
    print("\nThe nearest two sentences of each sense")
    for sense in dict.fromkeys(senses):
        same = np.array([other == sense for other in senses])
        pairs = np.where(np.outer(same, same), cosines, -np.inf)
        first, second = np.unravel_index(pairs.argmax(), pairs.shape)
        print(f"\n  {pairs[first, second]:.2f}  {sense}")
        print(f"        {marked(found[first])}\n        {marked(found[second])}")

    right = sum(senses[cosines[n].argmax()] == senses[n] for n in range(len(senses)))
    chance = (senses.count(senses[0]) - 1) / (len(senses) - 1)
    print(f"\nNearest to a sentence is one of the same sense: {right} of {len(senses)}")
    print(f"By chance it would be {chance:.0%}; here it is {right / len(senses):.0%}")


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
