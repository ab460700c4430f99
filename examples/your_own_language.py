"""Your own language in an evening: from raw text to a pipeline with ELMo.

Pretrains a biLM on a text for some minutes, puts it into a pipeline that is saved, and
shows which words in the text are nearest to a word in its context. Ctrl-C stops it;
run again, it goes on where it was, and with more minutes it goes on from there.

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
from spacy_elmo.pretrain.run import pretrain
from spacy_elmo.text.sentences import read_sentences
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
    # There is no best one if nothing was held out, or training stopped too early.
    models = [args.output / name for name in ("model-best", "model-last")]
    bilm = next(model for model in models if model.exists())

    tokenization = Tokenization(config.corpus.lang, config.corpus.tokenizer)
    nlp = tokenization.load()
    nlp.add_pipe("elmo", config={"bilm": str(bilm)})
    nlp.to_disk(args.output / "pipeline")  # with its biLM
    nlp = spacy.load(args.output / "pipeline")
    print(f'The pipeline: spacy.load("{args.output / "pipeline"}")')

    sentences = islice(read_sentences([args.text], tokenization), args.sentences)
    docs = list(nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences))
    tokens = [token for doc in docs for token in doc]
    counts = Counter(token.text for token in tokens if token.is_alpha)
    frequent = [word for word, _ in counts.most_common(100)]
    word = args.word or max(frequent, key=len)
    if word not in {token.text for token in tokens}:
        raise SystemExit(f"'{word}' is not in the first {len(docs)} sentences")
    vectors = np.concatenate([doc.tensor for doc in docs])  # (n_tokens, width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = next(n for n, token in enumerate(tokens) if token.text == word)
    cosines = vectors @ vectors[asked]
    print(f"Nearest to {in_context(tokens[asked])}")
    for n in np.argsort(-cosines, kind="stable")[1:11]:
        print(f"  {cosines[n]:.3f}  {in_context(tokens[n])}")


def in_context(token: Token) -> str:
    """RETURNS (str): A word in brackets, and a few on both sides."""
    before = token.doc[max(0, token.i - 5) : token.i].text
    after = token.doc[token.i + 1 : token.i + 6].text
    return f"{before} [{token.text}] {after}".strip()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="a file, a folder or a pattern")
    parser.add_argument("--lang", default="xx", help="for spaCy's tokenizer")
    parser.add_argument("--tokenizer", help="another one that is registered")
    parser.add_argument("--minutes", type=float, default=240, help="in all")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--bilm", help="go on from this one: what load_bilm takes")
    parser.add_argument("--output", type=Path, default=Path("training/mine"))
    parser.add_argument("--word", help="to look for; by default a frequent one")
    parser.add_argument("--sentences", type=int, default=1000, help="to look in")
    return parser.parse_args()


if __name__ == "__main__":
    main()
