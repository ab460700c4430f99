"""Projected LSTMs on arrays.

Passes over the gates take most of the time of a small LSTM, so a step makes few passes:
- All gates are sigmoids, because tanh(x) is 2 * sigmoid(2x) - 1, and one call computes
  1 / (1 + exp(-x)) for all four. The signs and factors are part of the weights.
- The cell is halved: then 2 * sigmoid - 1 needs no factor. Halving is exact.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..config import LSTMConfig

# For how many tokens the product with the inputs is computed at a time. More tokens
# would need more memory.
TOKENS_AT_A_TIME = 512
# The gates of this many bytes are computed at a time, so that they stay in a CPU cache.
CACHE_BYTES = 2**18

GateSource = Callable[[int, int], np.ndarray]


class LayerWeights(NamedTuple):
    """The weights of one layer of one direction, prepared for `CellStep`.

    inputs, recurrent: (n_in, 4 * dim) and (proj, 4 * dim).
    bias: (4 * dim,).
    projection: (dim, proj); None if there is no projection.
    """

    inputs: np.ndarray
    recurrent: np.ndarray
    bias: np.ndarray
    projection: np.ndarray | None

    @classmethod
    def prepare(
        cls, config: LSTMConfig, arrays: dict[str, np.ndarray], name: str
    ) -> "LayerWeights":
        """Put the signs and factors of `CellStep` into the weights of a layer.

        arrays (dict[str, np.ndarray]): All weights of the model.
        name (str): The beginning of the names of the layer's weights.
        """
        dim, n_in = config.dim, config.projection_dim
        scale = np.full(4 * dim, -1, dtype=np.float32)
        scale[dim : 2 * dim] = -2  # the candidate
        bias = arrays[name + "bias"].astype(np.float32)
        bias[2 * dim : 3 * dim] += config.forget_bias
        weight = arrays[name + "weight"]
        projection = None
        if config.projection:
            projection = arrays[name + "projection"] * np.float32(2)
        return cls(
            weight[:n_in] * scale, weight[n_in:] * scale, bias * scale, projection
        )

    def from_inputs(self, x: np.ndarray) -> np.ndarray:
        """Compute the part of the gates that does not depend on the state.

        x (np.ndarray): (n, n_in).
        RETURNS (np.ndarray): (n, 4 * dim).
        """
        gates = x @ self.inputs
        gates += self.bias
        return gates


class CellStep:
    """Computes what follows the matrix product of a step, in place.

    dim (int): The size of the cell.
    limit (float | None): The cell clip.
    """

    def __init__(self, dim: int, limit: float | None) -> None:
        self.dim = dim
        self.limit = None if limit is None else np.float32(limit / 2)

    def __call__(self, gates: np.ndarray, cell: np.ndarray, out: np.ndarray) -> None:
        """Compute one step.

        gates (np.ndarray): The scaled gates before their nonlinearities, (..., 4 *
            dim); overwritten.
        cell (np.ndarray): The halved cell, (..., dim), updated in place.
        out (np.ndarray): Half of sigmoid(o) * tanh(c), (..., dim).
        """
        dim = self.dim
        _sigmoid(gates)
        i, candidate = gates[..., :dim], gates[..., dim : 2 * dim]
        candidate -= _HALF
        candidate *= i
        cell *= gates[..., 2 * dim : 3 * dim]
        cell += candidate
        if self.limit is not None:
            np.minimum(cell, self.limit, out=cell)
            np.maximum(cell, -self.limit, out=cell)
        np.multiply(cell, _MINUS_FOUR, out=out)
        _sigmoid(out)
        out -= _HALF
        out *= gates[..., 3 * dim :]


# As operands of float32 arrays, Python floats are slower than float32 numbers.
_ONE, _HALF = np.float32(1), np.float32(0.5)
_MINUS_FOUR = np.float32(-4)


def _sigmoid(x: np.ndarray) -> None:
    """Compute sigmoid(-x) in place. exp may overflow to infinity, which gives 0."""
    np.exp(x, out=x)
    np.add(x, _ONE, out=x)
    np.divide(_ONE, x, out=x)


class NumpyLSTM:
    """One layer of one direction. It runs over batches in the layout of Packing."""

    def __init__(self, config: LSTMConfig, weights: LayerWeights) -> None:
        self.weights = weights
        self.dim = config.dim
        self.step = CellStep(config.dim, config.cell_clip)
        # Like the original program, do not clip h if there is no projection.
        self.proj_clip = config.proj_clip if config.projection else None
        self.rows_at_a_time = max(1, CACHE_BYTES // (16 * config.dim))

    def gates_of(self, x: np.ndarray) -> GateSource:
        """Return the inputs of `run` for packed vectors, (n_tokens, n_in)."""
        return lambda first, last: self.weights.from_inputs(x[first:last])

    def run(
        self,
        inputs: GateSource,
        active: Sequence[int],
        h: np.ndarray,
        c: np.ndarray,
    ) -> np.ndarray:
        """Run the layer over a packed batch.

        inputs (GateSource): Maps a range of packed tokens to the part of their gates
            that depends on the inputs, (n, 4 * dim); it may be overwritten.
        active (Sequence[int]): The number of active rows at each step.
        h, c (np.ndarray): The states (n_rows, proj) and (n_rows, dim), updated in
            place.
        RETURNS (np.ndarray): Packed outputs, (n_tokens, proj).
        """
        out = np.empty((sum(active), h.shape[1]), np.float32)
        hidden = np.empty((active[0], self.dim), np.float32)
        product = np.empty((active[0], 4 * self.dim), np.float32)
        c *= _HALF
        last = h
        start = 0
        for counts in _divide(active):
            gates = inputs(start, start + sum(counts))
            at = 0
            for n in counts:
                if n < len(last):
                    h[n : len(last)] = last[n:]
                new = out[start : start + n]
                np.matmul(last[:n], self.weights.recurrent, out=product[:n])
                self._finish(product[:n], gates[at : at + n], c, hidden[:n])
                self._project(hidden[:n], new)
                last = new
                at += n
                start += n
        h[: len(last)] = last
        c *= np.float32(2)
        return out

    def _finish(
        self, gates: np.ndarray, more: np.ndarray, c: np.ndarray, hidden: np.ndarray
    ) -> None:
        """Add both parts of the gates and compute the cells, some rows at a time."""
        for at in range(0, len(gates), self.rows_at_a_time):
            rows = slice(at, at + self.rows_at_a_time)
            part = gates[rows]
            part += more[rows]
            self.step(part, c[: len(gates)][rows], hidden[rows])

    def _project(self, hidden: np.ndarray, out: np.ndarray) -> None:
        if self.weights.projection is None:
            np.multiply(hidden, np.float32(2), out=out)
        else:
            np.matmul(hidden, self.weights.projection, out=out)
        if self.proj_clip is not None:
            np.clip(out, -self.proj_clip, self.proj_clip, out=out)


def _divide(active: Sequence[int]) -> Iterator[list[int]]:
    """Divide steps into groups of about TOKENS_AT_A_TIME tokens."""
    group: list[int] = []
    n_tokens = 0
    for n in active:
        if group and n_tokens + n > TOKENS_AT_A_TIME:
            yield group
            group, n_tokens = [], 0
        group.append(n)
        n_tokens += n
    if group:
        yield group
