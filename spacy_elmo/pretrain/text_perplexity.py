"""Measure the perplexity of a biLM on any text."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..bilm import BiLMBase
from ..text.problems import say_problems
from ..text.tokenizers import Tokenization
from .corpus import build_corpus
from .perplexity import Perplexity, evaluate
from .surprisal_table import write_surprisal
from .vocab import softmax_numbers
from .windows import WindowEncoder


def measure_text(
    bilm: BiLMBase,
    texts: Sequence[str],
    tokenization: Tokenization,
    *,
    carry: bool = False,
    n_process: int = 1,
    surprisal: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Perplexity:
    """Measure the perplexity on a text.

    bilm (BiLMBase): The biLM, with a softmax and its vocabulary.
    texts (Sequence[str]): Files, folders or glob patterns.
    tokenization (Tokenization): How the text is divided into words.
    carry (bool): Carry the LSTM states from sentence to sentence. By default, each
        sentence starts from zero states.
    n_process (int): Processes that tokenize.
    surprisal (Path | None): A file for a table with the surprisal of each word.
    say (Callable[[str], None]): Called with a sentence if the text has problems.
    """
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
        say_problems(corpus.problems, say)
        outputs, boundaries, unknown = softmax_numbers(corpus.words, bilm.vocab)
        window_encoder = WindowEncoder(
            bilm, corpus.words, outputs, boundaries, forget=False
        )
        result = evaluate(bilm, corpus.train, window_encoder, unknown, carry=carry)
        if surprisal is not None:
            write_surprisal(bilm, corpus, surprisal)
        return result
