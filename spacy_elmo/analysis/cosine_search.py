"""The rows of a large table that are nearest to some vectors, by cosine."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..files import write_atomically
from .layer_vectors import unit

CHUNK = 2**14  # rows multiplied at a time

Found = tuple[np.ndarray, np.ndarray]  # rows and cosines, the nearest first: (k,) each


def nearest(vectors: np.ndarray, queries: np.ndarray, k: int) -> list[Found]:
    """Compare with all rows.

    vectors (np.ndarray): (n, width), of length 1; may be on disk.
    queries (np.ndarray): (n_queries, width).
    """
    targets = torch.from_numpy(unit(queries).astype(np.float32))
    rows = torch.zeros(len(queries), 0, dtype=torch.int64)
    scores = torch.zeros(len(queries), 0)
    for start in range(0, len(vectors), CHUNK):
        block = torch.from_numpy(vectors[start : start + CHUNK]).float()
        numbers = torch.arange(start, start + len(block)).expand(len(queries), -1)
        rows = torch.cat([rows, numbers], 1)
        scores = torch.cat([scores, targets @ block.T], 1)
        scores, kept = scores.topk(min(k, scores.shape[1]))
        rows = rows.gather(1, kept)
    return [rank(vectors, q, found) for q, found in zip(queries, rows.numpy())]


def rank(vectors: np.ndarray, query: np.ndarray, rows: np.ndarray) -> Found:
    """Put some rows in order, by cosines without the rounding of float16 lengths."""
    rows = np.sort(rows)
    cosines = unit(vectors[rows].astype(np.float32)) @ unit(query).astype(np.float32)
    order = np.argsort(-cosines, kind="stable")
    return rows[order], cosines[order].clip(-1, 1)


class Approximate:
    """A graph of neighbours (HNSW, by usearch), made once and kept in a file."""

    def __init__(self, path: Path, vectors: np.ndarray) -> None:
        self.vectors = vectors
        index_class = need_usearch()
        if not path.exists():
            index = index_class(ndim=vectors.shape[1], metric="cos", dtype="f16")
            for start in range(0, len(vectors), CHUNK):
                block = np.asarray(vectors[start : start + CHUNK])
                index.add(np.arange(start, start + len(block)), block)
            write_atomically(path, lambda part: index.save(str(part)))
        self.index = index_class.restore(str(path), view=True)

    def nearest(self, queries: np.ndarray, k: int) -> list[Found]:
        """queries (np.ndarray): (n_queries, width)."""
        found = (self.index.search(q.astype(np.float32), k).keys for q in queries)
        return [
            rank(self.vectors, query, keys.astype(np.int64))
            for query, keys in zip(queries, found)
        ]


def need_usearch() -> Any:
    try:
        from usearch.index import Index
    except ImportError:
        raise ValueError(
            "--approximate needs usearch: pip install 'spacy-elmo[neighbors]'"
        ) from None
    return Index
