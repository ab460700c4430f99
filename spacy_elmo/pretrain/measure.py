"""Perplexity of a biLM on any text."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..bilm import BiLM
from ..text.tokenizers import Tokenization
from .corpus import Corpus, build_corpus, tell_troubles
from .perplexity import Perplexity, evaluate, output_numbers
from .windows import Feeder


def measure(
    bilm: BiLM,
    texts: Sequence[str],
    tokenization: Tokenization,
    *,
    carry: bool = False,
    n_process: int = 1,
    tell: Callable[[str], None] = lambda text: None,
) -> Perplexity:
    """texts (Sequence[str]): Files, folders, patterns.
    carry (bool): Read the text as one stream instead of sentence by sentence.
    tell (Callable[[str], None]): Told what was wrong with the text."""
    if bilm.softmax is None or bilm.vocab is None:
        raise ValueError(
            "this biLM has no softmax with a vocabulary, so it gives no probabilities; "
            "expected one as `spacy elmo pretrain` writes it"
        )
    with tempfile.TemporaryDirectory(prefix="spacy-elmo-") as folder:
        corpus, _ = build_corpus(
            texts,
            Path(folder) / "corpus",
            tokenization=tokenization,
            dev_share=0.0,
            n_process=n_process,
        )
        tell_troubles(corpus.meta["troubles"], tell)
        return measure_corpus(bilm, corpus, carry=carry)


def measure_corpus(bilm: BiLM, corpus: Corpus, *, carry: bool = False) -> Perplexity:
    outputs, boundaries, unknown = output_numbers(corpus.words, bilm.vocab or [])
    feeder = Feeder(bilm, corpus.words, outputs, boundaries, forget=False)
    return evaluate(bilm, corpus.train, feeder, unknown, carry=carry)
