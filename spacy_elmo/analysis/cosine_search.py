"""Search a large table for the rows that are nearest to given vectors, by cosine."""

from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_atomically
from ..fingerprints import checksum_file, has_checksum
from ..regular_files import read_regular
from .layer_vectors import to_unit_length

CHUNK_ROWS = 2**14  # rows that are compared at a time

Nearest = tuple[np.ndarray, np.ndarray]  # rows and cosines, nearest first: (k,) each


def find_nearest(vectors: np.ndarray, queries: np.ndarray, k: int) -> list[Nearest]:
    """Find the k nearest rows for each query, by comparing it with all rows.

    vectors (np.ndarray): Rows of unit length, (n, width); may be memory-mapped.
    queries (np.ndarray): Vectors of any length, (n_queries, width).
    """
    targets = to_unit_length(queries).astype(np.float32)
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    scores = np.zeros((len(queries), 0), dtype=np.float32)
    for start in range(0, len(vectors), CHUNK_ROWS):
        chunk = vectors[start : start + CHUNK_ROWS].astype(np.float32)
        numbers = np.arange(start, start + len(chunk))
        rows = np.concatenate([rows, np.tile(numbers, (len(queries), 1))], 1)
        scores = np.concatenate([scores, targets @ chunk.T], 1)
        if k < scores.shape[1]:
            kept = np.argpartition(-scores, k - 1 if k else 0, axis=1)[:, :k]
            rows = np.take_along_axis(rows, kept, 1)
            scores = np.take_along_axis(scores, kept, 1)
    return [rank_rows(vectors, q, found) for q, found in zip(queries, rows)]


def rank_rows(vectors: np.ndarray, query: np.ndarray, rows: np.ndarray) -> Nearest:
    """Sort some rows of a table by their cosine to the query.

    The rows are scaled to unit length again in float32, because vectors that were
    rounded to float16 do not have a length of exactly 1.

    vectors (np.ndarray): The whole table, (n, width).
    query (np.ndarray): A vector of any length, (width,).
    rows (np.ndarray): The numbers of the rows to sort, (k,).
    """
    rows = np.sort(rows)
    units = to_unit_length(vectors[rows].astype(np.float32))
    cosines = units @ to_unit_length(query).astype(np.float32)
    order = np.argsort(-cosines, kind="stable")
    return rows[order], cosines[order].clip(-1, 1)


class ApproximateSearch:
    """A faster search that may miss some rows. It uses a graph of neighbours (HNSW, by
    usearch), which is built once and kept in a file.

    path (Path): The file of the graph.
    vectors (np.ndarray): Rows of unit length, (n, width).
    """

    def __init__(self, path: Path, vectors: np.ndarray) -> None:
        self.vectors = vectors
        index_class = import_usearch()
        stored = path.with_name(path.name + ".checksum")
        if not _is_whole(path, stored):
            index = index_class(ndim=vectors.shape[1], metric="cos", dtype="f16")
            for start in range(0, len(vectors), CHUNK_ROWS):
                chunk = np.asarray(vectors[start : start + CHUNK_ROWS])
                index.add(np.arange(start, start + len(chunk)), chunk)
            write_atomically(path, lambda part: index.save(str(part)))
            checksum = checksum_file(path)
            write_atomically(stored, lambda part: part.write_text(checksum))
        self.index = index_class.restore(str(path), view=True)

    def find_nearest(self, queries: np.ndarray, k: int) -> list[Nearest]:
        """Find k rows for each query that are probably the nearest ones.

        queries (np.ndarray): Vectors of any length, (n_queries, width).
        """
        found = (self.index.search(q.astype(np.float32), k).keys for q in queries)
        return [
            rank_rows(self.vectors, query, keys.astype(np.int64))
            for query, keys in zip(queries, found)
        ]


def _is_whole(path: Path, stored: Path) -> bool:
    """Return whether a file is as it was when its checksum was stored."""
    try:
        return has_checksum(path, read_regular(stored).decode())
    except (OSError, ValueError):
        return False


def import_usearch() -> Any:
    try:
        from usearch.index import Index
    except ImportError:
        raise ValueError(
            "--approximate needs usearch: pip install 'spacy-elmo[neighbors]'"
        ) from None
    return Index
