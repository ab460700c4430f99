"""Cache the vectors of distinct words."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..devices import to_device
from ..encoders import Key, TokenEncoder

# Words encoded at a time: enough for fast matrix products, with little memory.
CHUNK = 512


class WordCache:
    """A cache of the vectors x_k of words. Its owner drops it when weights change.

    Words that are missing are added. If they do not fit, the cache is emptied and
    refilled with the words of the call. A call with more distinct words than max_words
    does not use the cache. So a repeated call returns exactly the same vectors.

    encoder (TokenEncoder): Maps keys to ids.
    compute (Callable): Maps ids (n_keys, width) to vectors, (n_keys, output_dim).
    max_words (int): The most words that the cache holds.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        compute: Callable[[Tensor], Tensor],
        max_words: int,
    ) -> None:
        self.encoder = encoder
        self.compute = compute
        self.max_words = max_words
        self._lock = threading.Lock()
        self._rows: dict[Key, int] = {}
        self._table = torch.empty(0, encoder.output_dim)

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._rows = {}

    def lookup(self, sentences: Sequence[list[Key]]) -> tuple[Tensor, list[np.ndarray]]:
        """Look up the vectors of all words, and compute those that are missing.

        sentences (Sequence[list[Key]]): The keys of each sentence.
        RETURNS (tuple): A table of vectors (n, output_dim) and, for each sentence, the
            rows of its tokens in the table, (n_tokens,).
        """
        distinct = dict.fromkeys(key for keys in sentences for key in keys)
        if len(distinct) > self.max_words:
            rows = {key: row for row, key in enumerate(distinct)}
            table = self._compute(list(distinct))
        else:
            with self._lock:
                self._add(list(distinct))
                rows, table = self._rows, self._table
        index = [
            np.fromiter(map(rows.__getitem__, keys), np.int64, len(keys))
            for keys in sentences
        ]
        return table, index

    def _add(self, distinct: list[Key]) -> None:
        # Other threads may use the table of an earlier call: rows are added or the
        # whole table is replaced, but no row is ever overwritten.
        new = [key for key in distinct if key not in self._rows]
        if len(self._rows) + len(new) > self.max_words:
            new = distinct
            self._rows = {}
        if not new:
            return
        vectors = self._compute(new)
        used = len(self._rows)
        needed = used + len(new)
        if needed > len(self._table) or not used:
            room = min(self.max_words, max(needed, 2 * used))
            table = vectors.new_empty(room, vectors.shape[1])
            if used:
                table[:used] = self._table[:used]
            self._table = table
        self._table[used:needed] = vectors
        self._rows.update(zip(new, range(used, needed)))

    def _compute(self, keys: list[Key]) -> Tensor:
        """Compute the vectors of keys, (n_keys, output_dim). Words of similar length
        are computed together, which saves padding."""
        cost = np.array([self.encoder.cost(key) for key in keys])
        order = np.argsort(cost, kind="stable")
        out = None
        for start in range(0, len(order), CHUNK):
            chosen = order[start : start + CHUNK]
            vectors = self.compute(self.encoder.encode([keys[k] for k in chosen]))
            if out is None:
                out = vectors.new_empty(len(keys), vectors.shape[1])
            out[to_device(chosen, out.device)] = vectors
        assert out is not None
        return out
