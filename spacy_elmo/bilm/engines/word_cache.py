"""Cache the vectors of distinct words."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..array_types import concatenate, new_empty
from ..word_ids import Key, WordIds

# Words encoded at a time: enough for fast matrix products, with little memory.
CHUNK = 512


class WordCache:
    """A cache of the vectors x_k of words. Its owner drops it when weights change.

    Words that are missing are added. If they do not fit, the cache is emptied and
    refilled with the words of the call. A call with more distinct words than max_words
    does not use the cache. So a repeated call returns exactly the same vectors.

    word_ids (WordIds): Maps keys to ids.
    compute (Callable): Maps ids (n_keys, width) to vectors, (n_keys, output_dim), as an
        array or a tensor.
    max_words (int): The most words that the cache holds.
    """

    def __init__(
        self,
        word_ids: WordIds,
        compute: Callable[[np.ndarray], Any],
        max_words: int,
    ) -> None:
        self.word_ids = word_ids
        self.compute = compute
        self.max_words = max_words
        self._lock = threading.Lock()
        self._rows: dict[Key, int] = {}
        self._table: Any = ()

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._rows = {}

    def lookup(self, sentences: Sequence[list[Key]]) -> tuple[Any, list[np.ndarray]]:
        """Look up the vectors of all words, and compute those that are missing.

        sentences (Sequence[list[Key]]): The keys of each sentence.
        RETURNS (tuple): A table of vectors (n, output_dim) and, for each sentence, the
            rows of its tokens in the table, (n_tokens,).
        """
        distinct = dict.fromkeys(key for keys in sentences for key in keys)
        if len(distinct) > self.max_words:
            keys, table = self._compute(list(distinct))
            rows = {key: row for row, key in enumerate(keys)}
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
        new, vectors = self._compute(new)
        used = len(self._rows)
        needed = used + len(new)
        if needed > len(self._table) or not used:
            room = min(self.max_words, max(needed, 2 * used))
            table = new_empty((room, vectors.shape[1]), vectors)
            if used:
                table[:used] = self._table[:used]
            self._table = table
        self._table[used:needed] = vectors
        self._rows.update(zip(new, range(used, needed)))

    def _compute(self, keys: list[Key]) -> tuple[list[Key], Any]:
        """Compute the vectors of keys. Words of similar length are computed together,
        which saves padding.

        RETURNS (tuple): The keys in another order, and their vectors in that order,
            (n_keys, output_dim).
        """
        keys = sorted(keys, key=self.word_ids.cost)
        chunks = [keys[at : at + CHUNK] for at in range(0, len(keys), CHUNK)]
        encoded = (self.word_ids.encode(chunk) for chunk in chunks)
        return keys, concatenate([self.compute(ids) for ids in encoded])
