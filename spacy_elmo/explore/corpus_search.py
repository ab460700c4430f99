"""Search an index for the words that are nearest to a word, with any mix of layers."""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np

from ..analysis.token_index import TokenIndex
from .mixed_vectors import find_largest

CHUNK_ROWS = 2**11  # few enough rows to stay in the processor's cache
MAX_QUERIES = 4  # whose products are kept


class Found(NamedTuple):
    """A word of the index: the words of its sentence, its position there, and the
    cosine of its mix with that of the query."""

    words: list[str]
    position: int
    cosine: float


class CorpusSearch:
    """Searches an index.

    To compare mixes only the products of the layers are needed: those of the query with
    each word, and those of each word with itself. They are kept, so that the next
    search for the same word, with other weights, takes almost no time.
    """

    def __init__(self, index: TokenIndex) -> None:
        self.index = index
        self._tables = [index.get_layer(name) for name in index.layer_names[:-1]]
        self._own: np.ndarray | None = None  # (n_layers, n_layers, n_tokens)
        self._products: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._lock = Lock()

    def find(
        self,
        query: np.ndarray,
        weights: np.ndarray,
        top: int,
        skip: tuple[list[str], int],
    ) -> list[Found]:
        """Find the nearest words.

        query (np.ndarray): All layers of a word, of length 1 each, (n_layers, width).
        weights (np.ndarray): The weight of each layer, (n_layers,).
        top (int): How many to find.
        skip (tuple[list[str], int]): The sentence and position of the query, which is
            left out, wherever the corpus has the same sentence.
        RETURNS (list[Found]): Nearest first. Repeated sentences are left out.
        """
        with self._lock:
            cosines = self._compare(query, weights)
        k = 4 * (top + 1)
        while True:
            order = find_largest(cosines, k)
            found = self._drop_repeated(order, cosines, skip)
            if len(found) >= top or k >= len(cosines):
                return found[:top]
            k *= 4

    def _drop_repeated(
        self, order: np.ndarray, cosines: np.ndarray, skip: tuple[list[str], int]
    ) -> list[Found]:
        seen = {(tuple(skip[0]), skip[1])}
        found = []
        for token in order.tolist():
            number, position = self.index.locate(token)
            words = self.index.get_sentence(number)
            key = (tuple(words), position)
            if key not in seen:
                seen.add(key)
                found.append(Found(words, position, float(cosines[token])))
        return found

    def _compare(self, query: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Compute the cosine of the mixed query with the mix of each token of the
        index, (n_tokens,)."""
        products = self._multiply(query)
        assert self._own is not None  # computed along with the first products
        dots = np.einsum("i,j,ijn->n", weights, weights, products)
        squares = np.einsum("i,j,ijn->n", weights, weights, self._own)
        lengths = np.sqrt(np.maximum(squares, 0)) * np.linalg.norm(weights @ query)
        cosines = dots / np.where(lengths > 0, lengths, 1)
        return cosines.clip(-1, 1)

    def _multiply(self, query: np.ndarray) -> np.ndarray:
        """Multiply each layer of the query with each layer of all tokens of the index:
        (n_layers, n_layers, n_tokens)."""
        key = query.tobytes()
        if key not in self._products:
            n_layers, n_tokens = len(self._tables), len(self._tables[0])
            is_first = self._own is None
            if self._own is None:
                self._own = np.zeros((n_layers, n_layers, n_tokens), np.float32)
            products = np.zeros((n_layers, n_layers, n_tokens), np.float32)
            for start in range(0, n_tokens, CHUNK_ROWS):
                rows = slice(start, start + CHUNK_ROWS)
                chunk = [to_float32(table[rows]) for table in self._tables]
                for j, vectors in enumerate(chunk):
                    products[:, j, rows] = query @ vectors.T
                    for i in range(j + 1 if is_first else 0):
                        own = np.einsum("nw,nw->n", chunk[i], vectors)
                        self._own[i, j, rows] = self._own[j, i, rows] = own
            self._products[key] = products
        self._products.move_to_end(key)
        while len(self._products) > MAX_QUERIES:
            self._products.popitem(last=False)
        return self._products[key]


def to_float32(values: np.ndarray) -> np.ndarray:
    """Convert finite float16 numbers to float32, three times as fast as numpy does.
    Move the bits of exponent and fraction to their places, then correct the bias of the
    exponent, which is 15 in float16 and 127 in float32."""
    bits = values.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x70002000)  # the sign, and the 15 bits that were moved
    floats = bits.view(np.float32)
    floats *= np.float32(2.0 ** (127 - 15))
    return floats
