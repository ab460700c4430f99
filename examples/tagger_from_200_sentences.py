"""Train a tagger on 200 sentences, with ELMo and without.

After so little training data, many words of a new text are unknown to the tagger. The
biLM of ELMo was trained on much more text, so its vectors show what kind of word an
unknown word is. This script uses spaCy's Python API to train two taggers that differ
only in ELMo, and prints their accuracies.

    python examples/tagger_from_200_sentences.py --bilm training/en/bilm/model-best
    python examples/tagger_from_200_sentences.py --lang ko --treebank assets/treebank/ko
"""

import argparse
import random
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch

from spacy_elmo.gold.conllu import read_conllu
from spacy_elmo.gold.conversion import Conversion

ASSETS = Path(__file__).parents[1] / "assets"
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
CNN = {
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 96,
        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        "rows": [2000, 500, 1000, 1000],
        "include_static_vectors": False,
    },
    "encode": {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 96,
        "depth": 4,
        "window_size": 1,
        "maxout_pieces": 3,
    },
}
WITHOUT = {"@architectures": "spacy.Tok2Vec.v2", **CNN}
WITH = {"@architectures": "spacy-elmo.Tok2VecWithElmo.v1", **CNN}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treebank", type=Path, default=ASSETS / "treebank" / "en")
    parser.add_argument("--lang", default="en")
    parser.add_argument(
        "--bilm", help="a biLM folder, file or bundled name; by default the bundled one"
    )
    parser.add_argument("--sentences", type=int, default=200, help="to train on")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name, tok2vec in (("without", WITHOUT), ("with", WITH)):
        nlp = spacy.blank(args.lang, config=TOKENIZER)
        if tok2vec is WITH:
            nlp.add_pipe("elmo", config={"bilm": args.bilm})
        nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
        train = load_examples(nlp, args.treebank, "train")[: args.sentences]
        fix_random_seed(args.seed)
        optimizer = nlp.initialize(lambda: train)  # noqa: B023 (called at once)
        for _ in range(args.epochs):
            random.shuffle(train)
            for batch in minibatch(train, size=8):
                nlp.update(batch, sgd=optimizer, drop=0.1)
        accuracy = nlp.evaluate(load_examples(nlp, args.treebank, "dev"))["tag_acc"]
        print(f"{name:>7} ELMo: {accuracy:.2%} of tags correct, {len(train)} sentences")


def load_examples(nlp: Language, treebank: Path, part: str) -> list[Example]:
    (path,) = treebank.glob(f"*{part}*.conllu")
    docs = list(read_conllu(path, Conversion(nlp)))
    return [Example(nlp.make_doc(doc.text), doc) for doc in docs]


if __name__ == "__main__":
    main()
