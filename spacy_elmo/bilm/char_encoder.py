"""The token encoder of ELMoForManyLangs: a CNN or an LSTM over the characters of a
word, concatenated with a word embedding."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from .config import CharsConfig
from .devices import to_device
from .encoders import Key, TokenEncoder, row_width
from .engines.packing import Packing
from .layers import CharCNN
from .lexicon import (
    BEGIN,
    BEGIN_WORD,
    END,
    END_WORD,
    PADDING,
    UNKNOWN,
    Lexicon,
    n_rows,
)


class CharEncoder(TokenEncoder):
    """Encodes a word as a projection of [word embedding ; character features]. The
    sentence boundaries are the strings <bos> and <eos>, as in the original program."""

    def __init__(
        self, config: CharsConfig, output_dim: int, *, lexicon: Lexicon
    ) -> None:
        chars = CharNetwork(config, n_rows(lexicon.characters))
        super().__init__(chars.n_features + config.word_dim, output_dim, True)
        self.chars = chars
        self.fixed_boundaries = config.reader == "cnn"
        self.max_chars = config.max_chars
        self.char_rows = lexicon.characters
        self.word_rows = lexicon.words
        self.word_table = None
        if config.word_dim:
            table = torch.empty(n_rows(lexicon.words), config.word_dim)
            self.word_table = nn.Parameter(table)

    def reset_parameters(self) -> None:
        if self.word_table is not None:
            nn.init.uniform_(self.word_table, -0.25, 0.25)

    def keys(self, sentence: Sequence[str]) -> list[Key]:
        words = [BEGIN, *sentence, END]
        if self.chars.cnn is not None:
            return list(words)
        return list(_mixed_keys(words))

    def encode(self, keys: Sequence[Key]) -> Tensor:
        """Map keys to ids, (n_keys, 1 + width): the row of the word in the word table,
        then the inputs of the CNN or the LSTM."""
        if self.chars.cnn is not None:
            words = [self._cut(str(key)) for key in keys]
            chars = self._encode_for_cnn(words)
        else:
            words = [key[0] for key in keys]  # type: ignore[index]
            chars = self._encode_for_lstm(keys)
        unknown = self.word_rows.get(UNKNOWN, 0)
        rows = np.array([[self.word_rows.get(w, unknown)] for w in words], np.int64)
        return torch.from_numpy(np.concatenate([rows.reshape(-1, 1), chars], 1))

    def features(self, ids: Tensor) -> Tensor:
        chars = self.chars(ids[:, 1:])
        if self.word_table is None:
            return chars
        rows = to_device(ids[:, 0], self.word_table.device)
        return torch.cat([F.embedding(rows, self.word_table), chars], 1)

    def cost(self, key: Key) -> int:
        return len(str(key)) if self.chars.cnn is not None else len(str(key[1]))  # type: ignore[index]

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
        assert self.chars.cnn is not None
        width = row_width(lengths, self.chars.cnn.widest, self.max_chars)
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


class CharNetwork(nn.Module):
    """Maps character ids to features (n_keys, n_features): the outputs of a CNN, or the
    last states of an LSTM."""

    def __init__(self, config: CharsConfig, n_rows: int) -> None:
        super().__init__()
        self.cnn = None
        if config.reader == "cnn":
            self.cnn = CharCNN(
                n_rows,
                char_dim=config.char_dim,
                filters=config.filters,
                n_highway=config.n_highway,
                activation=config.activation,
            )
            self.n_features = self.cnn.n_features
        else:
            self.embedding = nn.Parameter(torch.empty(n_rows, config.char_dim))
            self.lstm = nn.LSTM(
                config.char_dim, config.char_dim, batch_first=True, bidirectional=True
            )
            self.n_features = 2 * config.char_dim

    def reset_parameters(self) -> None:
        if self.cnn is None:
            nn.init.uniform_(self.embedding, -0.25, 0.25)

    def forward(self, ids: Tensor) -> Tensor:
        if self.cnn is not None:
            return self.cnn(ids)
        # Compute the layout on the host, where the ids usually are. Both words of a key
        # have the key's length.
        directions, chars = ids[:, :2].cpu(), ids[:, 2:].cpu().chunk(2, 1)
        packing = Packing(range(len(ids)), (chars[0] >= 0).sum(1).tolist())
        ranked = torch.tensor(packing.rows)  # the keys, longest first
        places = ranked.argsort()
        halves = []
        for side in (0, 1):
            flat = chars[side][ranked]
            steps = flat[flat >= 0][packing.order[0]]
            x = F.embedding(to_device(steps, self.embedding.device), self.embedding)
            packed = PackedSequence(x, torch.tensor(packing.active))
            _, (last, _) = self.lstm(packed)  # (2, n_keys, char_dim)
            own = torch.stack([directions[:, side], places])
            direction, place = to_device(own, last.device)
            halves.append(last[direction, place])
        return torch.cat(halves, 1)  # (n_keys, 2 * char_dim)


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
