"""Test the search for the nearest rows of a table."""

import numpy as np
import pytest
from helpers.analysis import cosines

from spacy_elmo.analysis import cosine_search
from spacy_elmo.analysis.cosine_search import ApproximateSearch, find_nearest


@pytest.mark.parametrize("chunk", [3, 64, 10**6])
@pytest.mark.parametrize("k", [1, 5, 64, 100])
def test_nearest_rows_in_chunks_of_any_size(monkeypatch, chunk, k):
    monkeypatch.setattr(cosine_search, "CHUNK_ROWS", chunk)
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (64, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = rng.normal(0, 3, (4, 8)).astype(np.float32)
    for query, (rows, found) in zip(
        queries, find_nearest(vectors.astype(np.float16), queries, k)
    ):
        expected = cosines(vectors, query)
        assert rows.tolist() == np.argsort(-expected)[:k].tolist()
        np.testing.assert_allclose(found, expected[rows], atol=1e-3)


def test_zero_vectors_have_cosine_0():
    vectors = np.array([[0, 0], [1, 0]], dtype=np.float32)
    [(rows, found)] = find_nearest(vectors, np.array([[2.0, 0]], np.float32), 2)
    assert rows.tolist() == [1, 0] and found.tolist() == [1, 0]


def test_approximate_search_finds_most_and_is_kept(tmp_path):
    pytest.importorskip("usearch")
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (2000, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f2")
    queries = rng.normal(0, 1, (20, 16)).astype(np.float32)
    exact = find_nearest(vectors, queries, 10)
    stamps = []
    for _ in range(2):
        found = ApproximateSearch(tmp_path / "a.usearch", vectors).find_nearest(
            queries, 10
        )
        shared = [len({*a[0]} & {*b[0]}) for a, b in zip(found, exact)]
        assert np.mean(shared) > 9
        for (rows, similar), query in zip(found, queries):
            assert similar.tolist() == sorted(similar.tolist(), reverse=True)
            np.testing.assert_allclose(
                similar, cosines(vectors[rows], query), atol=1e-5
            )
        stamps.append((tmp_path / "a.usearch").stat().st_mtime_ns)
    assert stamps[0] == stamps[1]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.usearch", "a.usearch.checksum"]


@pytest.mark.parametrize("name", ["a.usearch", "a.usearch.checksum"])
def test_damaged_graph_is_built_again(tmp_path, name):
    pytest.importorskip("usearch")
    vectors = np.eye(16, dtype="f2")
    query = vectors[:1].astype(np.float32)
    for _ in range(2):
        [(rows, _)] = ApproximateSearch(tmp_path / "a.usearch", vectors).find_nearest(
            query, 3
        )
        assert rows[0] == 0
        data = bytearray((tmp_path / name).read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / name).write_bytes(data)
