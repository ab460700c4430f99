"""From the keys of sentences to layers: what stays the same between calls."""

from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    TypeVar,
)

import numpy as np
import torch
from torch import Tensor

from ..devices import to_device
from ..encoders import Key
from ..state import State
from .engine import Engine
from .int8 import Int8Engine
from .packing import Packing, plan
from .word_cache import WordCache

if TYPE_CHECKING:
    from ..model import BiLM

PRECISIONS = ("float32", "int8")

ResultT = TypeVar("ResultT")


class PaddedEngine:
    """The differentiable model as an engine: for GPUs, for float64, and to test the
    fast engine against."""

    def __init__(self, bilm: "BiLM") -> None:
        self.bilm = bilm

    def encode(self, ids: Tensor) -> Tensor:
        return self.bilm.encoder(ids)

    def run(
        self, table: Tensor, index: Tensor, packing: Packing, state: State
    ) -> Tensor:
        """As Engine.run."""
        # All indices are made on the host: to ask a GPU how many places of a mask are
        # true means to wait for it.
        active = np.arange(packing.lengths[0]) < packing.lengths[:, None]
        padded = np.zeros(active.shape, dtype=np.int64)
        padded[active] = index.numpy()
        x = table[to_device(padded, table.device)]  # (n_rows, n_steps, proj)
        lengths = to_device(packing.lengths, table.device)
        output = self.bilm.contextualize(x, lengths, state)
        state.put(range(state.n_rows), output.state)
        rows, steps = to_device(np.stack(active.nonzero()), table.device)
        return output.layers.permute(1, 2, 0, 3)[rows, steps]


class Runtime:
    """An engine with its word cache and the states after a sentence's boundary, all
    derived from weights as they are now."""

    def __init__(self, bilm: "BiLM", *, precision: str, cache_words: int) -> None:
        self.bilm = bilm
        fast = bilm.device.type == "cpu" and bilm.dtype == torch.float32
        parts = bilm.encoder, bilm.directions, bilm.config.lstm.skip_connections
        self.engine: Engine | PaddedEngine
        if precision == "int8":
            if not fast:
                raise ValueError("int8 needs a float32 model on a CPU")
            self.engine = Int8Engine(*parts)
        elif fast:
            self.engine = Engine(*parts)
        else:
            self.engine = PaddedEngine(bilm)
        self.words = WordCache(bilm.encoder, self.engine.encode, cache_words)
        self._boundary: State | None = None

    def run(
        self,
        sentences: Sequence[list[Key]],
        state: State | None,
        *,
        max_batch_tokens: int,
        finish: Callable[[int, Tensor], ResultT],
    ) -> tuple[list[ResultT], State | None]:
        """sentences: Keys of each, boundaries included.
        state: A row a sentence (or more) to start from, left as it is; None starts
            every sentence from zero.
        finish: Called with the number of each sentence and its layers without the
            boundaries, (n_tokens, n_layers + 1, width), a view of its batch's.
        RETURNS: What finish returned, in order, and the states after the sentences.
        """
        table, index = self.words.lookup(sentences)
        shape = (0, self.bilm.config.lstm.n_layers + 1, self.bilm.config.width)
        empty = table.new_empty(shape)
        out: dict[int, ResultT] = {}
        # From zero, all sentences pass their first boundary alike and none needs the
        # last one: with that step done once, the boundaries cost nothing.
        skip = state is None and self.bilm.encoder.fixed_boundaries
        if skip:
            index = [rows[1:-1] for rows in index]
        elif state is not None:
            state = state.resized(len(sentences))
        for packing in plan([len(rows) for rows in index], max_batch_tokens):
            n = len(packing.rows)
            if skip:
                start = self.boundary().take([0] * n)
            elif state is None:
                start = State.zeros(self.bilm.config.lstm, n, table)
            else:
                start = state.take(packing.rows)
            layers = self.engine.run(table, packing.index(index), packing, start)
            if state is not None:
                state.put(packing.rows, start)
            for row, begin, length in zip(
                packing.rows, packing.starts, packing.lengths
            ):
                cut = 0 if skip else 1
                out[row] = finish(row, layers[begin + cut : begin + length - cut])
        for row in range(len(sentences)):
            if row not in out:
                out[row] = finish(row, empty)
        return [out[row] for row in range(len(sentences))], state

    def boundary(self) -> State:
        """RETURNS (State): One row: after the begin of a sentence going forward, after
        its end going backward."""
        if self._boundary is None:
            begin, end = self.bilm.encoder.keys([])
            table, index = self.words.lookup([[begin], [end]])
            packing = Packing([0, 1], [1, 1])
            state = State.zeros(self.bilm.config.lstm, 2, table)
            self.engine.run(
                table, torch.from_numpy(np.concatenate(index)), packing, state
            )
            self._boundary = State(
                torch.stack([state.h[0, :, :1], state.h[1, :, 1:]]),
                torch.stack([state.c[0, :, :1], state.c[1, :, 1:]]),
            )
        return self._boundary
