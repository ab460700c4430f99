"""The sentences of a text, one after another."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from .text_files import find_files
from .tokenizers import Tokenization
from .word_streams import make_chunks, split_chunk


def read_sentences(
    texts: Sequence[str],
    tokenization: Tokenization,
    troubles: "Counter[str] | None" = None,
) -> Iterator[list[str]]:
    """texts (Sequence[str]): Files, folders, patterns.
    troubles (Counter[str] | None): Where broken input is counted."""
    troubles = Counter() if troubles is None else troubles
    for chunk in make_chunks(find_files(texts), 0.0, troubles):
        found = split_chunk(tokenization, 0.0, chunk)
        stream = found.streams[0]
        for part in np.split(stream, np.flatnonzero(stream == 0))[1:]:
            yield [found.words[number - 1] for number in part[1:].tolist()]
