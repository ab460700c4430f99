"""Map words to the ids of ELMoForManyLangs: their row in a table of words, and their
characters."""

from collections.abc import Sequence

import numpy as np

from .config import CharsConfig
from .lexicon import BEGIN, BEGIN_WORD, END, END_WORD, PADDING, UNKNOWN, Lexicon
from .word_ids import Key, WordIds, row_width


class CharIds(WordIds):
    """Maps words to rows of a word table and characters. The sentence boundaries are
    the strings <bos> and <eos>, as in the original program."""

    def __init__(self, config: CharsConfig, lexicon: Lexicon) -> None:
        self.for_cnn = config.reader == "cnn"
        self.fixed_boundaries = self.for_cnn
        self.widest = max(width for width, _ in config.filters)
        self.max_chars = config.max_chars
        self.char_rows = lexicon.characters
        self.word_rows = lexicon.words

    def keys(self, sentence: Sequence[str]) -> list[Key]:
        words = [BEGIN, *sentence, END]
        return list(words) if self.for_cnn else list(_mixed_keys(words))

    def encode(self, keys: Sequence[Key]) -> np.ndarray:
        """Map keys to ids, (n_keys, 1 + width): the row of the word in the word table,
        then the inputs of the CNN or the LSTM."""
        if self.for_cnn:
            words = [self._cut(str(key)) for key in keys]
            chars = self._encode_for_cnn(words)
        else:
            words = [key[0] for key in keys]  # type: ignore[index]
            chars = self._encode_for_lstm(keys)
        unknown = self.word_rows.get(UNKNOWN, 0)
        rows = np.array([[self.word_rows.get(w, unknown)] for w in words], np.int64)
        return np.concatenate([rows.reshape(-1, 1), chars], 1)

    def cost(self, key: Key) -> int:
        return len(str(key)) if self.for_cnn else len(str(key[1]))  # type: ignore[index]

    def _cut(self, word: str) -> str:
        return word[: self.max_chars - 2]

    def _char_ids(self, word: str) -> list[int]:
        unknown = self.char_rows[UNKNOWN]
        inner = [word] if word in (BEGIN, END) else list(word)
        ids = [self.char_rows.get(char, unknown) for char in inner]
        return [self.char_rows[BEGIN_WORD], *ids, self.char_rows[END_WORD]]

    def _encode_for_cnn(self, words: Sequence[str]) -> np.ndarray:
        ids = [self._char_ids(word) for word in words]
        lengths = np.array([len(row) - 2 for row in ids], dtype=np.int64)
        width = row_width(lengths, self.widest, self.max_chars)
        return self._pad(ids, [width] * len(ids), width)

    def _encode_for_lstm(self, keys: Sequence[Key]) -> np.ndarray:
        """Map keys (see _mixed_keys) to ids, (n_keys, 2 + 2 * width): two directions,
        then the characters of the first and of the second word. A word is padded to the
        key's length and then filled up with -1."""
        lengths = [key[1] for key in keys]  # type: ignore[index]
        width = max(lengths, default=0)
        parts = [key[2:] for key in keys]  # type: ignore[index]
        directions = np.array([[a[0], b[0]] for a, b in parts]).reshape(-1, 2)
        sides = [
            self._pad([self._char_ids(part[side][1]) for part in parts], lengths, width)
            for side in (0, 1)
        ]
        return np.concatenate([directions, *sides], 1).astype(np.int64)

    def _pad(
        self, ids: list[list[int]], lengths: Sequence[int], width: int
    ) -> np.ndarray:
        out = np.full((len(ids), width), -1, dtype=np.int64)
        for row, (chars, length) in enumerate(zip(ids, lengths)):
            out[row, :length] = self.char_rows[PADDING]
            out[row, : len(chars)] = chars
        return out


def _mixed_keys(words: Sequence[str]) -> list[tuple]:
    """Make keys for the LSTM: (word, length, (direction, word), (direction, word)).
    The two pairs name the LSTM states that become the features of the token.

    The models were trained with a mistake in the original program, so it is repeated
    here. The program pads all words to the longest one and runs the LSTM over the
    padding too. It lists the last states of all words, first of one direction and then
    of the other, and gives the first two states to the first token, the next two to the
    second, and so on. So most tokens get the states of two *other* words. Here, each
    sentence is treated like a batch of 1 in the original program.
    """
    n = len(words)
    length = max(len(word) for word in words) + 2
    states = [(direction, word) for direction in (0, 1) for word in words]
    return [(words[k], length, states[2 * k], states[2 * k + 1]) for k in range(n)]
