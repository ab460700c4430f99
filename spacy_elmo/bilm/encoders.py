"""Token encoders: map words to the vectors x_k that enter the LSTMs.

An encoder maps the ids of words (see word_ids.py) to vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import BytesConfig, CharsConfig, WordsConfig
from .devices import to_device
from .layers import CharCNN, Linear
from .lexicon import Lexicon, n_rows
from .word_ids import Key, TableIds, WordIds, make_word_ids


class TokenEncoder(nn.Module, ABC):
    """The base class of token encoders.

    word_ids (WordIds): Maps words to ids.
    output_dim (int): The size of the vectors.
    """

    def __init__(
        self, word_ids: WordIds, n_features: int, output_dim: int, *, projection: bool
    ) -> None:
        super().__init__()
        self.word_ids = word_ids
        self.output_dim = output_dim
        self.projection = Linear(n_features, output_dim) if projection else None

    def encode(self, keys: Sequence[Key]) -> Tensor:
        """Map keys to ids on the host; see WordIds.encode."""
        return torch.from_numpy(self.word_ids.encode(keys))

    def forward(self, *groups: Tensor) -> Tensor:
        """Map ids to vectors.

        groups (Tensor): Ids as `encode` returns them, (n_keys, width) each, on the
            host.
        RETURNS (Tensor): (n_keys of all groups, output_dim), on the encoder's device.
        """
        x = self.features(groups)
        return x if self.projection is None else self.projection(x)

    @abstractmethod
    def features(self, groups: Sequence[Tensor]) -> Tensor:
        """Map ids to the inputs of the projection.

        groups (Sequence[Tensor]): As for `forward`.
        RETURNS (Tensor): (n_keys of all groups, n_features).
        """


class ByteEncoder(TokenEncoder):
    """Encodes words as UTF-8 bytes, through a character CNN. No word is unknown."""

    def __init__(
        self,
        config: BytesConfig,
        output_dim: int,
        *,
        projection: bool,
        word_ids: WordIds,
    ) -> None:
        super().__init__(word_ids, config.n_features, output_dim, projection=projection)
        self.cnn = CharCNN(
            config.n_rows,
            char_dim=config.char_dim,
            filters=config.filters,
            n_highway=config.n_highway,
            activation=config.activation,
        )
        self.max_chars = config.max_chars

    def features(self, groups: Sequence[Tensor]) -> Tensor:
        return self.cnn(*groups)


class WordEncoder(TokenEncoder):
    """Encodes words as rows of a table."""

    def __init__(
        self,
        config: WordsConfig,
        output_dim: int,
        *,
        projection: bool,
        word_ids: TableIds,
    ) -> None:
        super().__init__(word_ids, config.dim, output_dim, projection=projection)
        table = torch.empty(n_rows(word_ids.rows), config.dim)
        self.table = nn.Parameter(table, requires_grad=config.trainable)

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.table, -0.25, 0.25)

    def features(self, groups: Sequence[Tensor]) -> Tensor:
        rows = to_device(torch.cat([*groups])[:, 0], self.table.device)
        return F.embedding(rows, self.table)


def make_encoder(
    config: BytesConfig | CharsConfig | WordsConfig,
    output_dim: int,
    *,
    projection: bool,
    lexicon: Lexicon | None,
) -> TokenEncoder:
    """Make the encoder that the config describes, with uninitialized weights."""
    word_ids = make_word_ids(config, lexicon)
    if isinstance(config, BytesConfig):
        return ByteEncoder(config, output_dim, projection=projection, word_ids=word_ids)
    if isinstance(config, WordsConfig):
        assert isinstance(word_ids, TableIds)
        return WordEncoder(config, output_dim, projection=projection, word_ids=word_ids)
    from .char_encoder import CharEncoder

    assert lexicon is not None
    return CharEncoder(config, output_dim, lexicon=lexicon, word_ids=word_ids)
