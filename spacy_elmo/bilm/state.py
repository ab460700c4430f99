"""The LSTM states of both directions and all layers, a row a sentence."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .config import LSTMConfig
from .devices import to_device


class State(NamedTuple):
    """h (2, n_layers, n_rows, proj) and c (2, n_layers, n_rows, dim); direction 0 is
    forward, 1 backward."""

    h: Tensor
    c: Tensor

    @classmethod
    def zeros(cls, config: LSTMConfig, n_rows: int, like: Tensor) -> "State":
        shape = (2, config.n_layers, n_rows)
        return cls(
            like.new_zeros(*shape, config.projection_dim),
            like.new_zeros(*shape, config.dim),
        )

    @property
    def n_rows(self) -> int:
        return self.h.shape[2]

    def take(self, rows: Sequence[int]) -> "State":
        """RETURNS (State): A copy of some rows."""
        chosen = self._index(rows)
        return State(self.h[:, :, chosen], self.c[:, :, chosen])

    def put(self, rows: Sequence[int], other: "State") -> None:
        """Overwrite some rows."""
        chosen = self._index(rows)
        self.h[:, :, chosen] = other.h
        self.c[:, :, chosen] = other.c

    def _index(self, rows: Sequence[int]) -> Tensor:
        return to_device(torch.tensor(rows, dtype=torch.int64), self.h.device)

    def resized(self, n_rows: int) -> "State":
        """RETURNS (State): A copy with at least n_rows rows, new ones zero."""
        extra = max(0, n_rows - self.n_rows)
        pad = (0, 0, 0, extra)
        return State(
            torch.nn.functional.pad(self.h, pad), torch.nn.functional.pad(self.c, pad)
        )
