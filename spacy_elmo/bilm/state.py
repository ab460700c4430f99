"""The LSTM states of both directions and all layers, one row per sentence."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .config import LSTMConfig
from .devices import to_device

# The hidden state h (n_rows, proj) and the cell c (n_rows, dim) of one layer.
LayerState = tuple[Tensor, Tensor]


class State(NamedTuple):
    """The hidden states h (2, n_layers, n_rows, proj) and the cells c (2, n_layers,
    n_rows, dim) of a biLM. Direction 0 is forward, direction 1 backward."""

    h: Tensor
    c: Tensor

    @classmethod
    def stack(cls, directions: Sequence[Sequence[LayerState]]) -> "State":
        """Join the states of the layers of both directions."""
        h = [torch.stack([h for h, _ in layers]) for layers in directions]
        c = [torch.stack([c for _, c in layers]) for layers in directions]
        return cls(torch.stack(h), torch.stack(c))

    @classmethod
    def zeros(cls, config: LSTMConfig, n_rows: int, like: Tensor) -> "State":
        shape = (2, config.n_layers, n_rows)
        return cls(
            like.new_zeros(*shape, config.projection_dim),
            like.new_zeros(*shape, config.dim),
        )

    def layers(self, direction: int) -> list[LayerState]:
        """Return views of the states of each layer of one direction."""
        return list(zip(self.h[direction], self.c[direction]))

    @property
    def n_rows(self) -> int:
        return self.h.shape[2]

    def take(self, rows: Sequence[int]) -> "State":
        """Copy the rows with these numbers."""
        chosen = self._index(rows)
        return State(self.h[:, :, chosen], self.c[:, :, chosen])

    def put(self, rows: Sequence[int], other: "State") -> None:
        """Overwrite the rows with these numbers by the rows of another state."""
        chosen = self._index(rows)
        self.h[:, :, chosen] = other.h
        self.c[:, :, chosen] = other.c

    def _index(self, rows: Sequence[int]) -> Tensor:
        return to_device(torch.tensor(rows, dtype=torch.int64), self.h.device)

    def resized(self, n_rows: int) -> "State":
        """Copy the state and append rows of zeros until it has n_rows rows or more."""
        extra = max(0, n_rows - self.n_rows)
        pad = (0, 0, 0, extra)
        return State(
            torch.nn.functional.pad(self.h, pad), torch.nn.functional.pad(self.c, pad)
        )
