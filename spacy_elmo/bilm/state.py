"""The LSTM states of both directions and all layers, one row per sentence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .array_types import as_index, new_zeros, stack
from .config import LSTMConfig

# The hidden state h (n_rows, proj) and the cell c (n_rows, dim) of one layer.
LayerState = tuple[Any, Any]


class State(NamedTuple):
    """The hidden states h (2, n_layers, n_rows, proj) and the cells c (2, n_layers,
    n_rows, dim) of a biLM, as arrays or tensors. Direction 0 is forward, direction 1
    backward."""

    h: Any
    c: Any

    @classmethod
    def stack(cls, directions: Sequence[Sequence[LayerState]]) -> "State":
        """Join the states of the layers of both directions."""
        h = [stack([h for h, _ in layers]) for layers in directions]
        c = [stack([c for _, c in layers]) for layers in directions]
        return cls(stack(h), stack(c))

    @classmethod
    def zeros(cls, config: LSTMConfig, n_rows: int, like: Any) -> "State":
        """Make a state of zeros of the type, dtype and device of another array."""
        shape = (2, config.n_layers, n_rows)
        return cls(
            new_zeros((*shape, config.projection_dim), like),
            new_zeros((*shape, config.dim), like),
        )

    def layers(self, direction: int) -> list[LayerState]:
        """Return views of the states of each layer of one direction."""
        return list(zip(self.h[direction], self.c[direction]))

    @property
    def n_rows(self) -> int:
        return self.h.shape[2]

    def take(self, rows: Sequence[int]) -> "State":
        """Copy the rows with these numbers."""
        chosen = as_index(rows, self.h)
        return State(self.h[:, :, chosen], self.c[:, :, chosen])

    def put(self, rows: Sequence[int], other: "State") -> None:
        """Overwrite the rows with these numbers by the rows of another state."""
        chosen = as_index(rows, self.h)
        self.h[:, :, chosen] = other.h
        self.c[:, :, chosen] = other.c

    def resized(self, n_rows: int, like: Any) -> "State":
        """Copy the state and append rows of zeros until it has n_rows rows or more. The
        copy has the type, dtype and device of another array."""
        n_rows = max(n_rows, self.n_rows)
        return State(*(_with_rows(part, n_rows, like) for part in self))


def _with_rows(part: Any, n_rows: int, like: Any) -> Any:
    resized = new_zeros((*part.shape[:2], n_rows, part.shape[3]), like)
    resized[:, :, : part.shape[2]] = part
    return resized
