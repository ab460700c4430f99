"""Check the sentences that users pass in."""

from collections.abc import Iterable


def check_sentences(sentences: Iterable[Iterable[str]]) -> list[list[str]]:
    """Turn sentences into lists of words. Raise ValueError if they are anything else.

    sentences (Iterable[Iterable[str]]): Tokenized sentences; generators are consumed.
    RETURNS (list[list[str]]): The words of each sentence.
    """
    if isinstance(sentences, str):
        raise ValueError("expected a list of sentences, found a string")
    lists: list[list[str]] = []
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise ValueError(f"sentence {number} is a string; expected a list of words")
        lists.append(list(sentence))
        for word in lists[-1]:
            if not isinstance(word, str):
                raise ValueError(
                    f"sentence {number} has {word!r}, of type {type(word).__name__}; "
                    "expected words as strings"
                )
    return lists
