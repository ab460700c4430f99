"""Load the sentences of a text one after another."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from .chunks import make_chunks
from .problems import Problems
from .text_files import find_files
from .tokenized_chunks import tokenize_chunk
from .tokenizers import Tokenization


def load_sentences(
    texts: Sequence[str],
    tokenization: Tokenization,
    problems: Problems | None = None,
) -> Iterator[list[str]]:
    """Load the sentences of text files.

    texts (Sequence[str]): Files, folders or glob patterns.
    tokenization (Tokenization): How the text is decoded and divided into words.
    problems (Problems | None): Counts the problems that are found in the text.
    YIELDS (list[str]): The words of a sentence.
    """
    problems = Counter() if problems is None else problems
    for chunk in make_chunks(find_files(texts), 0.0, problems, tokenization.encoding):
        tokenized = tokenize_chunk(tokenization, 0.0, chunk)
        tokens = tokenized.streams[0].tokens
        for sentence in np.split(tokens, np.flatnonzero(tokens == 0))[1:]:
            yield [tokenized.words[number - 1] for number in sentence[1:].tolist()]
