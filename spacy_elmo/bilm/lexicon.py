"""The symbols that token encoders know, with their rows in the tables of weights."""

from dataclasses import dataclass, field

from .config import BytesConfig, CharsConfig, EncoderConfig
from .errors import LexiconError

# Beginning and end of a sentence and the unknown word, in tables and vocabularies.
SPECIAL_WORDS = ("<S>", "</S>", "<UNK>")
# The same three in the tables of ELMoForManyLangs, which also pads words.
BEGIN, END, UNKNOWN, PADDING = "<bos>", "<eos>", "<oov>", "<pad>"
# The program that trained these models swaps the two boundaries of a word.
BEGIN_WORD, END_WORD = "<eow>", "<bow>"


@dataclass
class Lexicon:
    """The characters and words that an encoder knows, with their rows in its tables.
    Byte models need no lexicon."""

    characters: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)


def n_rows(symbols: dict[str, int]) -> int:
    """Return the number of rows that a table for these symbols has."""
    return max(symbols.values(), default=-1) + 1


def special_words(words: dict[str, int]) -> tuple[str, ...]:
    """Return the names that a table of words uses for the beginning and the end of a
    sentence and for the unknown word."""
    manylangs = (BEGIN, END, UNKNOWN)
    return manylangs if all(name in words for name in manylangs) else SPECIAL_WORDS


def check_lexicon(config: EncoderConfig, lexicon: Lexicon) -> None:
    """Raise LexiconError if the lexicon lacks a symbol that the encoder needs."""
    if isinstance(config, BytesConfig):
        return
    characters: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    if isinstance(config, CharsConfig):
        characters = (BEGIN_WORD, END_WORD, UNKNOWN, PADDING, BEGIN, END)
        words = (UNKNOWN,) if config.word_dim else ()
    else:
        words = special_words(lexicon.words)
    for name in characters:
        if name not in lexicon.characters:
            raise LexiconError("characters", name)
    for name in words:
        if name not in lexicon.words:
            raise LexiconError("words", name)
