"""Compute the layers of sentences from their keys: look up or compute the vectors of
words, make batches, and run them with an engine."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..encoders import Key
from ..state import State
from .cpu import CPUEngine
from .int8 import Int8Engine
from .packing import Packing, plan
from .padded import PaddedEngine
from .word_cache import WordCache

if TYPE_CHECKING:
    from ..model import BiLM

PRECISIONS = ("float32", "int8")

ResultT = TypeVar("ResultT")


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {PRECISIONS}")


def make_engine(bilm: "BiLM", precision: str) -> CPUEngine | PaddedEngine:
    """Make the fastest engine for a model on its current device, in its current
    dtype."""
    on_cpu = bilm.device.type == "cpu" and bilm.dtype == torch.float32
    if precision == "int8" and not on_cpu:
        raise ValueError("int8 needs a float32 model on a CPU")
    if not on_cpu:
        return PaddedEngine(bilm)
    engine_type = Int8Engine if precision == "int8" else CPUEngine
    return engine_type(bilm.encoder, bilm.directions, bilm.config.lstm.skip_connections)


class Embedder:
    """An engine, its word cache, and the states after the first boundary of a sentence.
    All are computed from the current weights."""

    def __init__(self, bilm: "BiLM", *, precision: str, cache_words: int) -> None:
        self.bilm = bilm
        self.engine = make_engine(bilm, precision)
        self.words = WordCache(bilm.encoder, self.engine.encode, cache_words)
        self._after_boundary: State | None = None

    def run(
        self,
        sentences: Sequence[list[Key]],
        state: State | None,
        *,
        max_batch_tokens: int,
        finish: Callable[[int, Tensor], ResultT],
    ) -> tuple[list[ResultT], State | None]:
        """Compute the layers of sentences.

        sentences (Sequence[list[Key]]): The keys of each sentence, with boundaries.
        state (State | None): Sentence r starts from row r; missing rows are zero. It is
            not changed. None starts every sentence from zero.
        max_batch_tokens (int): The most tokens to compute at a time.
        finish (Callable): Called with the number of each sentence and its layers
            without boundaries, (n_tokens, n_layers + 1, width), a view of its batch.
        RETURNS (tuple): The results of finish, in order, and the states after the
            sentences (None if state is None).
        """
        table, index = self.words.lookup(sentences)
        shape = (0, self.bilm.config.lstm.n_layers + 1, self.bilm.config.width)
        empty = table.new_empty(shape)
        out: dict[int, ResultT] = {}
        # Boundaries can often be skipped. Without a given state, reading the first one
        # leads to the same state in all sentences, so it is computed once. The last one
        # is not needed, because nothing is read after it.
        skip = state is None and self.bilm.encoder.fixed_boundaries
        if skip:
            index = [rows[1:-1] for rows in index]
        elif state is not None:
            state = state.resized(len(sentences))
        for packing in plan([len(rows) for rows in index], max_batch_tokens):
            n = len(packing.rows)
            if skip:
                start = self.after_boundary().take([0] * n)
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

    def after_boundary(self) -> State:
        """Return the state of each direction after it has read its first boundary: the
        beginning of a sentence forward, its end backward. It is computed only once.

        RETURNS (State): A state with one row.
        """
        if self._after_boundary is None:
            begin, end = self.bilm.encoder.keys([])
            table, index = self.words.lookup([[begin], [end]])
            packing = Packing([0, 1], [1, 1])
            state = State.zeros(self.bilm.config.lstm, 2, table)
            self.engine.run(
                table, torch.from_numpy(np.concatenate(index)), packing, state
            )
            self._after_boundary = State(
                torch.stack([state.h[0, :, :1], state.h[1, :, 1:]]),
                torch.stack([state.c[0, :, :1], state.c[1, :, 1:]]),
            )
        return self._after_boundary


class EmbedderSlot:
    """Holds the embedder of a model and makes a new one when weights, precision or the
    size of the cache have changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._made_for: Any = None

    def get(self, bilm: "BiLM") -> Embedder:
        """Return an embedder for the model as it is now."""
        check_precision(bilm.precision)
        weights = tuple((p.data_ptr(), p._version) for p in bilm.parameters())
        made_for = (weights, bilm.precision, bilm.cache_words)
        with self._lock:
            if self._embedder is None or self._made_for != made_for:
                self._embedder = Embedder(
                    bilm, precision=bilm.precision, cache_words=bilm.cache_words
                )
                self._made_for = made_for
            return self._embedder

    def drop(self) -> None:
        """Drop the embedder, and with it everything computed from the weights."""
        self._embedder = None

    def clear_words(self) -> None:
        """Drop the cached vectors of words."""
        if self._embedder is not None:
            self._embedder.words.clear()
