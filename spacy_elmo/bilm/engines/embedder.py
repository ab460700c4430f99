"""Compute the layers of sentences from their keys: look up or compute the vectors of
words, make batches, and run them with an engine."""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..array_types import new_empty, stack
from ..config import BiLMConfig
from ..state import State
from ..word_ids import Key, WordIds
from .packing import Packing, plan
from .word_cache import WordCache

ResultT = TypeVar("ResultT")

PRECISIONS = ("float32", "int8")


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {PRECISIONS}")


class Engine(Protocol):
    """Computes word vectors and layers, as arrays or as tensors."""

    def encode(self, ids: np.ndarray) -> Any:
        """Map ids, as WordIds.encode returns them, to word vectors, (n_words, proj)."""

    def run(self, table: Any, index: np.ndarray, packing: Packing, state: State) -> Any:
        """Run a batch of sentences.

        table (Array): Word vectors, (n_words, proj).
        index (np.ndarray): The row of each token in the table, sentence after sentence,
            (n_tokens,).
        packing (Packing): The layout of the batch.
        state (State): One row per sentence, in the packing's order; updated in place.
        RETURNS (Array): All layers, (n_tokens, n_layers + 1, 2 * proj), the tokens
            sentence after sentence.
        """


class Embedder:
    """An engine, its word cache, and the states after the first boundary of a sentence.
    All are computed from the current weights."""

    def __init__(
        self, config: BiLMConfig, word_ids: WordIds, engine: Engine, cache_words: int
    ) -> None:
        self.config = config
        self.word_ids = word_ids
        self.engine = engine
        self.cache_words = cache_words
        self._after_boundary: State | None = None
        self.forget_words()

    def forget_words(self) -> None:
        """Begin a new cache of word vectors."""
        self.words = WordCache(self.word_ids, self.engine.encode, self.cache_words)

    def run(
        self,
        sentences: Sequence[list[Key]],
        state: State | None,
        *,
        max_batch_tokens: int,
        finish: Callable[[int, Any], ResultT],
        boundaries: bool = False,
    ) -> tuple[list[ResultT], State | None]:
        """Compute the layers of sentences.

        sentences (Sequence[list[Key]]): The keys of each sentence, with boundaries.
        state (State | None): Sentence r starts from row r; missing rows are zero. It is
            not changed. None starts every sentence from zero.
        max_batch_tokens (int): The most tokens to compute at a time.
        finish (Callable): Called with the number of each sentence and its layers,
            (n_tokens, n_layers + 1, width), a view of its batch.
        boundaries (bool): Whether the layers include those of the sentence boundaries.
        RETURNS (tuple): The results of finish, in order, and the states after the
            sentences (None if state is None).
        """
        table, index = self.words.lookup(sentences)
        out: dict[int, ResultT] = {}
        # Boundaries can often be skipped. Without a given state, reading the first one
        # leads to the same state in all sentences, so it is computed once. The last one
        # is not needed, because nothing is read after it.
        skip = state is None and self.word_ids.fixed_boundaries and not boundaries
        if skip:
            index = [rows[1:-1] for rows in index]
        elif state is not None:
            # The model may have been moved or converted since the call before.
            state = state.resized(len(sentences), table)
        cut = 0 if skip or boundaries else 1
        for packing in plan([len(rows) for rows in index], max_batch_tokens):
            n = len(packing.rows)
            if skip:
                start = self.after_boundary().take([0] * n)
            elif state is None:
                start = State.zeros(self.config.lstm, n, table)
            else:
                start = state.take(packing.rows)
            layers = self.engine.run(table, packing.index(index), packing, start)
            if state is not None:
                state.put(packing.rows, start)
            for row, begin, length in zip(
                packing.rows, packing.starts, packing.lengths
            ):
                out[row] = finish(row, layers[begin + cut : begin + length - cut])
        for row in range(len(sentences)):
            if row not in out:
                shape = (0, self.config.lstm.n_layers + 1, self.config.width)
                out[row] = finish(row, new_empty(shape, table))
        return [out[row] for row in range(len(sentences))], state

    def after_boundary(self) -> State:
        """Return the state of each direction after it has read its first boundary: the
        beginning of a sentence forward, its end backward. It is computed only once.

        RETURNS (State): A state with one row.
        """
        if self._after_boundary is None:
            begin, end = self.word_ids.keys([])
            table, index = self.words.lookup([[begin], [end]])
            packing = Packing([0, 1], [1, 1])
            state = State.zeros(self.config.lstm, 2, table)
            self.engine.run(table, np.concatenate(index), packing, state)
            self._after_boundary = State(
                stack([state.h[0, :, :1], state.h[1, :, 1:]]),
                stack([state.c[0, :, :1], state.c[1, :, 1:]]),
            )
        return self._after_boundary


class EmbedderSlot:
    """Holds the embedder of a model, and makes a new one when anything that the old one
    depends on has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._made_for: Any = None
        _slots.add(self)

    def get(self, made_for: Any, make: Callable[[], Embedder]) -> Embedder:
        """Return the embedder that was made for an equal value of made_for, or make
        one."""
        with self._lock:
            if self._embedder is None or self._made_for != made_for:
                self._embedder = make()
                self._made_for = made_for
            return self._embedder

    def drop(self) -> None:
        """Drop the embedder, and with it everything computed from the weights."""
        self._embedder = None

    def clear_words(self) -> None:
        """Drop the cached vectors of words."""
        if self._embedder is not None:
            self._embedder.words.clear()

    def after_fork(self) -> None:
        """Replace the locks, which a thread of the parent process may have held, and
        the cache, which it may have been changing."""
        self._lock = threading.Lock()
        if self._embedder is not None:
            self._embedder.forget_words()


_slots: "weakref.WeakSet[EmbedderSlot]" = weakref.WeakSet()


def _after_fork() -> None:
    for slot in list(_slots):
        slot.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
