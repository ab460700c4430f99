"""The token encoder of ELMoForManyLangs: a CNN or an LSTM over the characters of a
word, concatenated with a word embedding."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from .config import CharsConfig
from .devices import to_device
from .encoders import TokenEncoder
from .engines.packing import Packing
from .layers import CharCNN
from .lexicon import Lexicon, n_rows
from .word_ids import WordIds


class CharEncoder(TokenEncoder):
    """Encodes a word as a projection of [word embedding ; character features]."""

    def __init__(
        self,
        config: CharsConfig,
        output_dim: int,
        *,
        lexicon: Lexicon,
        word_ids: WordIds,
    ) -> None:
        chars = CharNetwork(config, n_rows(lexicon.characters))
        n_features = chars.n_features + config.word_dim
        super().__init__(word_ids, n_features, output_dim, projection=True)
        self.chars = chars
        self.word_table = None
        if config.word_dim:
            table = torch.empty(n_rows(lexicon.words), config.word_dim)
            self.word_table = nn.Parameter(table)

    def reset_parameters(self) -> None:
        if self.word_table is not None:
            nn.init.uniform_(self.word_table, -0.25, 0.25)

    def features(self, groups: Sequence[Tensor]) -> Tensor:
        chars = torch.cat([self.chars(ids[:, 1:]) for ids in groups])
        if self.word_table is None:
            return chars
        ids = torch.cat([ids[:, 0] for ids in groups])
        rows = to_device(ids, self.word_table.device)
        return torch.cat([F.embedding(rows, self.word_table), chars], 1)


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
        # Compute the layout on the host, where the ids usually are. The two words of a
        # key are padded to the same length (see CharIds._encode_for_lstm).
        directions, chars = ids[:, :2].cpu(), ids[:, 2:].cpu().chunk(2, 1)
        packing = Packing(range(len(ids)), (chars[0] >= 0).sum(1).tolist())
        ranked = torch.tensor(packing.rows)  # the keys, longest first
        places = ranked.argsort()
        halves = []
        for side in (0, 1):
            flat = chars[side][ranked]
            steps = flat[flat >= 0][torch.from_numpy(packing.order[0])]
            x = F.embedding(to_device(steps, self.embedding.device), self.embedding)
            packed = PackedSequence(x, torch.tensor(packing.active))
            _, (last, _) = self.lstm(packed)  # (2, n_keys, char_dim)
            own = torch.stack([directions[:, side], places])
            direction, place = to_device(own, last.device)
            halves.append(last[direction, place])
        return torch.cat(halves, 1)  # (n_keys, 2 * char_dim)
