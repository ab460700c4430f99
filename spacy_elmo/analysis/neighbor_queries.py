"""Parse the queries of `spacy elmo neighbors`: words in their sentences."""

import re
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language

from ..regular_files import read_regular

MARKED = re.compile(r"([^\[\]]*)\[([^\[\]]+)\]([^\[\]]*)")


class Query(NamedTuple):
    """A word in a sentence: the words of the sentence, and the word's position."""

    words: list[str]
    position: int


class MarkedSentence(NamedTuple):
    """A sentence in which one word was marked: the text before it, the word, and the
    text after it."""

    before: str
    word: str
    after: str


def make_query(words: list[str], word: str, position: int | None = None) -> Query:
    """Make a query of a word in a sentence.

    position (int | None): The word's position, counted from 0; by default, the first
        one at which it occurs.
    """
    positions = [i for i, found in enumerate(words) if found == word]
    if not positions:
        raise ValueError(
            f"found no '{word}' in the query; expected one of its words: "
            + " ".join(words)
        )
    if position is None:
        return Query(words, positions[0])
    if position not in positions:
        raise ValueError(
            f"found no '{word}' at position {position} of the query; expected "
            + " or ".join(map(str, positions))
        )
    return Query(words, position)


def tokenize_query(nlp: Language, text: str, tokenized: bool) -> list[str]:
    """Split a sentence into words in the same way as the text of an index.

    tokenized (bool): Whether the words are already separated by spaces.
    """
    return [word for word, _ in _find_words(nlp, text, tokenized)]


def read_queries(path: Path) -> list[MarkedSentence]:
    """Read a file with one sentence per line, in which one word is in brackets."""
    try:
        text = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not UTF-8; expected sentences") from None
    sentences = []
    for number, line in enumerate(StringIO(text, newline=None), 1):
        if line.strip():
            match = MARKED.fullmatch(line.rstrip("\n"))
            if match is None:
                raise ValueError(
                    f"{path}:{number}: expected exactly one word in brackets, as in: "
                    "I [play] chess"
                )
            sentences.append(MarkedSentence(*match.groups()))
    if not sentences:
        raise ValueError(f"{path}: found no queries; expected one per line")
    return sentences


def make_marked_query(
    nlp: Language, sentence: MarkedSentence, tokenized: bool
) -> Query:
    """Make a query of the marked word."""
    found = _find_words(nlp, "".join(sentence), tokenized)
    words = [word for word, _ in found]
    marked = (sentence.word, len(sentence.before))
    if marked not in found:
        raise ValueError(
            f"found '{sentence.word}' in brackets; expected one of the words of the "
            f"query: {' '.join(words)}"
        )
    return Query(words, found.index(marked))


def _find_words(nlp: Language, text: str, tokenized: bool) -> list[tuple[str, int]]:
    """Return the words of a text, and the character offset of each."""
    if tokenized:
        return [(match[0], match.start()) for match in re.finditer(r"\S+", text)]
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"found half a character in {text!r}; expected valid Unicode")
    doc = nlp.make_doc(text)
    return [(token.text, token.idx) for token in doc if not token.is_space]
