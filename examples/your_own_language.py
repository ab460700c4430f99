"""Make a pipeline with ELMo for your own language from raw text, in an evening.

This script pretrains a biLM on a text for some minutes, saves a pipeline that contains
it, and prints the words whose vectors are most similar to that of a word in its
context. Ctrl-C stops it. Run it again, with more minutes if you like, and it resumes
where it stopped.

    python examples/your_own_language.py my_text.txt --lang fi --minutes 240
    python examples/your_own_language.py news/ --lang ko --tokenizer spacy.Tokenizer.v1
"""

import argparse
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import spacy
from spacy.tokens import Doc, Token

from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.tokenizers import Tokenization

CONFIG = Path(__file__).parents[1] / "configs" / "pretrain_small.cfg"


def main() -> None:
    args = parse_args()
    settings = {
        "paths.raw_text": args.text,
        "paths.initialize_from": args.bilm,
        "corpus.lang": args.lang,
        "corpus.tokenizer": args.tokenizer,
        "training.max_minutes": args.minutes,
    }
    config = load_config(args.config, settings)
    pretrain(config, args.output, resume=True)
    # There is no model-best if the config has no dev text, or training stopped early.
    models = [args.output / name for name in ("model-best", "model-last")]
    bilm = next(model for model in models if model.exists())

    tokenization = Tokenization(config.corpus.lang, config.corpus.tokenizer)
    nlp = tokenization.load()
    nlp.add_pipe("elmo", config={"bilm": str(bilm)})
    nlp.to_disk(args.output / "pipeline")  # the pipeline contains the biLM
    nlp = spacy.load(args.output / "pipeline")
    print(f'Saved the pipeline: spacy.load("{args.output / "pipeline"}")')

    sentences = islice(load_sentences([args.text], tokenization), args.sentences)
    docs = list(nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences))
    tokens = [token for doc in docs for token in doc]
    counts = Counter(token.text for token in tokens if token.is_alpha)
    frequent = [word for word, _ in counts.most_common(100)]
    word = args.word or max(frequent, key=len)
    if word not in {token.text for token in tokens}:
        raise SystemExit(
            f"the first {len(docs)} sentences do not contain '{word}'; expected a word "
            "of the text, or a higher value of --sentences"
        )
    vectors = np.concatenate([doc.tensor for doc in docs])  # (n_tokens, width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = next(n for n, token in enumerate(tokens) if token.text == word)
    cosines = vectors @ vectors[query]
    print(f"Most similar to {in_context(tokens[query])}")
    for n in np.argsort(-cosines, kind="stable")[1:11]:
        print(f"  {cosines[n]:.3f}  {in_context(tokens[n])}")


def in_context(token: Token) -> str:
    """Return a word in brackets, with up to five words on each side."""
    before = token.doc[max(0, token.i - 5) : token.i].text
    after = token.doc[token.i + 1 : token.i + 6].text
    return f"{before} [{token.text}] {after}".strip()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="a file, a folder or a pattern")
    parser.add_argument("--lang", default="xx", help="spaCy's code of the language")
    parser.add_argument(
        "--tokenizer", help="a registered tokenizer; by default that of the language"
    )
    parser.add_argument(
        "--minutes", type=float, default=240, help="of all runs together"
    )
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument(
        "--bilm", help="a biLM to start from, instead of random weights"
    )
    parser.add_argument("--output", type=Path, default=Path("training/mine"))
    parser.add_argument("--word", help="to compare; by default a frequent one")
    parser.add_argument(
        "--sentences", type=int, default=1000, help="to search for similar words"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
