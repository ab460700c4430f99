"""Map words to integer ids, which a token encoder then maps to vectors.

This happens in two steps: `keys` maps the tokens of a sentence to keys (tokens with
equal keys have equal vectors), `encode` maps keys to ids.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from enum import Enum

import numpy as np

from .config import BYTE_ROWS, BytesConfig, CharsConfig, WordsConfig
from .lexicon import Lexicon, check_lexicon, special_words

Key = Hashable


class Boundary(Enum):
    """The beginning and the end of a sentence, with their ids in byte models. They are
    not strings, so that no word equals them."""

    BEGIN = 256
    END = 257


class WordIds(ABC):
    """The base class of the ways to map words to ids.

    fixed_boundaries (bool): Whether the boundaries of all sentences have the same
        vectors.
    """

    fixed_boundaries = True

    def keys(self, sentence: Sequence[str]) -> list[Key]:
        """Return keys for the beginning of a sentence, each of its words, and its
        end."""
        return [Boundary.BEGIN, *sentence, Boundary.END]

    @abstractmethod
    def encode(self, keys: Sequence[Key]) -> np.ndarray:
        """Map keys to ids, (n_keys, width). The width may differ from call to call; the
        vectors do not depend on it."""

    def cost(self, key: Key) -> int:
        """Return the length of a key, in bytes or characters. Keys of similar length
        are encoded together, which saves padding."""
        return 1


class ByteIds(WordIds):
    """Maps words to their UTF-8 bytes."""

    BEGIN_WORD, END_WORD, PADDING = 258, 259, 260

    def __init__(self, config: BytesConfig) -> None:
        self.widest = max(width for width, _ in config.filters)
        self.max_chars = config.max_chars
        # A table of 262 rows begins with a row for "no word", which is not used here.
        self.shift = config.n_rows - BYTE_ROWS

    def encode(self, keys: Sequence[Key]) -> np.ndarray:
        words = [self._bytes(key) for key in keys]
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        width = row_width(lengths, self.widest, self.max_chars)
        ids = np.full((len(keys), width), self.PADDING, dtype=np.int64)
        ids[:, 0] = self.BEGIN_WORD
        rows = np.repeat(np.arange(len(keys)), lengths)
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = np.arange(len(rows)) - starts + 1
        ids[rows, columns] = np.frombuffer(b"".join(words), dtype=np.uint8)
        ids[np.arange(len(keys)), lengths + 1] = self.END_WORD
        for row, key in enumerate(keys):
            if isinstance(key, Boundary):
                ids[row, 1] = key.value
        return ids + self.shift

    def _bytes(self, key: Key) -> bytes:
        if isinstance(key, Boundary):
            return b"\0"  # a placeholder for the id of the boundary
        # Lone surrogates have no UTF-8 form; published models ignore them as well.
        return str(key).encode("utf-8", "ignore")[: self.max_chars - 2]

    def cost(self, key: Key) -> int:
        return len(self._bytes(key))


def row_width(lengths: np.ndarray, widest: int, max_chars: int) -> int:
    """Compute how wide rows of character ids must be. They need not always be padded to
    max_chars: the CNN takes the maximum over all windows, and all windows that contain
    only padding give the same value, so one such window is enough.

    lengths (np.ndarray): The lengths of words without their boundaries, (n_words,).
    widest (int): The width of the widest filter.
    """
    longest = int(lengths.max(initial=1)) + 2
    return min(max_chars, longest + widest)


class TableIds(WordIds):
    """Maps words to rows of a table."""

    def __init__(self, config: WordsConfig, lexicon: Lexicon) -> None:
        self.rows = lexicon.words
        self.names = special_words(self.rows)
        self.max_chars = config.max_chars

    def encode(self, keys: Sequence[Key]) -> np.ndarray:
        begin, end, unknown = (self.rows[name] for name in self.names)
        special = {Boundary.BEGIN: begin, Boundary.END: end}
        ids = [
            special[key]
            if isinstance(key, Boundary)
            else self.rows.get(str(key)[: self.max_chars], unknown)
            for key in keys
        ]
        return np.array(ids, dtype=np.int64).reshape(len(keys), 1)


def make_word_ids(
    config: BytesConfig | CharsConfig | WordsConfig, lexicon: Lexicon | None
) -> WordIds:
    """Make the WordIds of the encoder that the config describes."""
    if isinstance(config, BytesConfig):
        return ByteIds(config)
    if lexicon is None:
        raise ValueError(f"an encoder of type '{config.type}' needs a lexicon")
    check_lexicon(config, lexicon)
    if isinstance(config, WordsConfig):
        return TableIds(config, lexicon)
    from .char_ids import CharIds

    return CharIds(config, lexicon)
