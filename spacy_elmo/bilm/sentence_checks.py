"""Check the sentences that users pass in."""

from collections.abc import Iterable, Iterator
from typing import Any


def check_sentences(sentences: Iterable[Iterable[str]]) -> list[list[str]]:
    """Turn sentences into lists of words. Raise ValueError if they are anything else.

    sentences (Iterable[Iterable[str]]): Tokenized sentences; generators are consumed.
    RETURNS (list[list[str]]): The words of each sentence.
    """
    if isinstance(sentences, str):
        raise ValueError("expected a list of sentences, found a string")
    lists: list[list[str]] = []
    for number, sentence in enumerate(_iterate(sentences, "expected sentences")):
        if isinstance(sentence, str):
            raise ValueError(f"sentence {number} is a string; expected a list of words")
        what = f"sentence {number}: expected a list of words"
        lists.append(list(_iterate(sentence, what)))
        for word in lists[-1]:
            if not isinstance(word, str):
                raise ValueError(
                    f"sentence {number} has {word!r}, of type {type(word).__name__}; "
                    "expected words as strings"
                )
    return lists


def _iterate(items: Any, expected: str) -> Iterator[Any]:
    try:
        return iter(items)
    except TypeError:
        found = type(items).__name__
        raise ValueError(f"{expected}, found an object of type {found}") from None
