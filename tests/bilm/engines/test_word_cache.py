"""The cache of word vectors."""

import pytest
import torch

from spacy_elmo.bilm.engines.word_cache import WordCache


@pytest.fixture
def encoded(tiny, monkeypatch):
    """Return a list that collects all keys that the model encodes, in order."""
    keys = []
    word_ids = tiny.bilm.encoder.word_ids
    original = word_ids.encode

    def encode(some):
        keys.extend(some)
        return original(some)

    monkeypatch.setattr(word_ids, "encode", encode)
    return keys


def test_cached_words_are_not_computed_again(tiny, encoded):
    tiny.bilm.embed([["the", "cat"], ["the", "the"]])
    assert encoded.count("the") == encoded.count("cat") == 1
    encoded.clear()
    tiny.bilm.embed([["the", "dog", "cat", "dog"]])
    tiny.bilm.embed([["dog", "cat"]], stateful=True)
    assert encoded == ["dog"]


def make_cache(bilm, max_words):
    def compute(ids):
        return bilm.encoder(torch.from_numpy(ids))

    return WordCache(bilm.encoder.word_ids, compute, max_words)


@torch.no_grad()
def test_cache_holds_no_more_words_than_its_limit(tiny):
    cache = make_cache(tiny.bilm, 6)
    for number in range(10):
        cache.lookup([[f"w{number}"]])
        assert 0 < len(cache) <= 6
    cache.lookup([[f"w{number}" for number in range(10)]])
    assert 0 < len(cache) <= 6


def test_a_call_with_too_many_words_leaves_the_cache(tiny, encoded):
    tiny.bilm.cache_words = 6
    tiny.bilm.embed([["w9"]])
    tiny.bilm.embed([[f"w{number}" for number in range(10)]])
    encoded.clear()
    tiny.bilm.embed([["w9"]])
    assert encoded == []


@torch.no_grad()
def test_emptying_the_cache_keeps_the_table_of_an_earlier_call(tiny):
    cache = make_cache(tiny.bilm, 3)
    table, index = cache.lookup([["a", "b"]])
    before = table[index[0]]
    cache.lookup([["c", "d"]])  # empties the cache, which has no room for four
    assert torch.equal(table[index[0]], before)
