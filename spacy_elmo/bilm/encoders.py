"""Token encoders: map words to the vectors x_k that enter the LSTMs.

An encoder works in three steps: `keys` maps the tokens of a sentence to keys (tokens
with equal keys have equal vectors), `encode` maps keys to integer ids on the host, and
`forward` maps ids to vectors.
"""

from collections.abc import Hashable, Sequence
from enum import Enum

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import BYTE_ROWS, BytesConfig, CharsConfig, WordsConfig
from .devices import to_device
from .layers import CharCNN, Linear
from .lexicon import Lexicon, check_lexicon, n_rows, special_words

Key = Hashable


class Boundary(Enum):
    """The beginning and the end of a sentence, with their ids in byte models. They are
    not strings, so that no word equals them."""

    BEGIN = 256
    END = 257


class TokenEncoder(nn.Module):
    """Base class of token encoders.

    output_dim (int): The size of the vectors.
    fixed_boundaries (bool): Whether the boundaries of all sentences have the same
        vectors.
    """

    fixed_boundaries = True

    def __init__(self, n_features: int, output_dim: int, projection: bool) -> None:
        super().__init__()
        self.output_dim = output_dim
        self.projection = Linear(n_features, output_dim) if projection else None

    def keys(self, sentence: Sequence[str]) -> list[Key]:
        """Return keys for the beginning of a sentence, each of its words, and its
        end."""
        return [Boundary.BEGIN, *sentence, Boundary.END]

    def encode(self, keys: Sequence[Key]) -> Tensor:
        """Map keys to integer ids, one row per key. The width of the rows may differ
        from call to call; the vectors do not depend on it."""
        raise NotImplementedError

    def forward(self, *groups: Tensor) -> Tensor:
        """Map ids to vectors.

        groups (Tensor): Ids as `encode` returns them, (n_keys, width) each, on the
            host.
        RETURNS (Tensor): (n_keys of all groups, output_dim), on the encoder's device.
        """
        x = self.grouped_features(groups)
        return x if self.projection is None else self.projection(x)

    def grouped_features(self, groups: Sequence[Tensor]) -> Tensor:
        """Map groups of ids to the inputs of the projection, (n_keys, n_features)."""
        return torch.cat([self.features(ids) for ids in groups])

    def features(self, ids: Tensor) -> Tensor:
        """Map one group of ids (n_keys, width) to the inputs of the projection,
        (n_keys, n_features)."""
        raise NotImplementedError

    def cost(self, key: Key) -> int:
        """Return the length of a key, in bytes or characters. Keys of similar length
        are encoded together, which saves padding."""
        return 1


class ByteEncoder(TokenEncoder):
    """Encodes words as UTF-8 bytes, through a character CNN. No word is unknown."""

    BEGIN_WORD, END_WORD, PADDING = 258, 259, 260

    def __init__(
        self, config: BytesConfig, output_dim: int, *, projection: bool
    ) -> None:
        super().__init__(config.n_features, output_dim, projection)
        self.cnn = CharCNN(
            config.n_rows,
            char_dim=config.char_dim,
            filters=config.filters,
            n_highway=config.n_highway,
            activation=config.activation,
        )
        self.max_chars = config.max_chars
        # A table of 262 rows begins with a row for "no word", which is not used here.
        self.shift = config.n_rows - BYTE_ROWS

    def encode(self, keys: Sequence[Key]) -> Tensor:
        words = [self._bytes(key) for key in keys]
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        width = row_width(lengths, self.cnn.widest, self.max_chars)
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
        return torch.from_numpy(ids + self.shift)

    def _bytes(self, key: Key) -> bytes:
        if isinstance(key, Boundary):
            return b"\0"  # a placeholder for the id of the boundary
        # Lone surrogates have no UTF-8 form; published models ignore them as well.
        return str(key).encode("utf-8", "ignore")[: self.max_chars - 2]

    def grouped_features(self, groups: Sequence[Tensor]) -> Tensor:
        return self.cnn(*groups)

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


class WordEncoder(TokenEncoder):
    """Encodes words as rows of a table. The lexicon must contain the beginning and the
    end of sentences and the unknown word (see special_words)."""

    def __init__(
        self,
        config: WordsConfig,
        output_dim: int,
        *,
        projection: bool,
        lexicon: Lexicon,
    ) -> None:
        super().__init__(config.dim, output_dim, projection)
        self.rows = lexicon.words
        self.names = special_words(self.rows)
        self.max_chars = config.max_chars
        table = torch.empty(n_rows(self.rows), config.dim)
        self.table = nn.Parameter(table, requires_grad=config.trainable)

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.table, -0.25, 0.25)

    def encode(self, keys: Sequence[Key]) -> Tensor:
        begin, end, unknown = (self.rows[name] for name in self.names)
        special = {Boundary.BEGIN: begin, Boundary.END: end}
        ids = [
            special[key]
            if isinstance(key, Boundary)
            else self.rows.get(str(key)[: self.max_chars], unknown)
            for key in keys
        ]
        return torch.tensor(ids, dtype=torch.int64).view(len(keys), 1)

    def features(self, ids: Tensor) -> Tensor:
        return F.embedding(to_device(ids[:, 0], self.table.device), self.table)


def make_encoder(
    config: BytesConfig | CharsConfig | WordsConfig,
    output_dim: int,
    *,
    projection: bool,
    lexicon: Lexicon | None,
) -> TokenEncoder:
    """Make the encoder that the config describes, with uninitialized weights."""
    if isinstance(config, BytesConfig):
        return ByteEncoder(config, output_dim, projection=projection)
    if lexicon is None:
        raise ValueError(f"an encoder of type '{config.type}' needs a lexicon")
    check_lexicon(config, lexicon)
    if isinstance(config, WordsConfig):
        return WordEncoder(config, output_dim, projection=projection, lexicon=lexicon)
    from .char_encoder import CharEncoder

    return CharEncoder(config, output_dim, lexicon=lexicon)
