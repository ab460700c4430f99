"""The vectors of a sentence depend only on the sentence, not on the batch, the cache or
earlier calls."""

import numpy as np
import pytest
from helpers.vectors import A, B, C, difference, same_bits

from spacy_elmo.bilm.engines import kernels


@pytest.fixture(params=[True, False], ids=["packed", "plain"])
def any_kernel(request, monkeypatch):
    """Run a test with packed kernels, if torch has them, and with plain ones."""
    packed = request.param and kernels.has_packed_kernels()
    monkeypatch.setattr(kernels, "has_packed_kernels", lambda: packed)


def assert_independent(bilm, sentences, tolerance):
    together = bilm.embed(sentences)
    assert max(np.abs(x).max(initial=0) for x in together) > 0.5  # not just zeros
    for max_batch_tokens in (1, 100):
        found = bilm.embed(sentences, max_batch_tokens=max_batch_tokens)
        assert difference(found, together) <= tolerance
    reversed_order = bilm.embed([["more"] * 30, *sentences[::-1], ["else"]])[-2:0:-1]
    assert difference(reversed_order, together) <= tolerance


def assert_independent_of_words_before(bilm, sentences, tolerance):
    together = bilm.embed(sentences)
    bilm.clear_cache()
    for number, sentence in enumerate(sentences * 2):
        if number >= len(sentences):
            bilm.clear_cache()
        expected = together[number % len(sentences)]
        assert difference(bilm.embed([sentence]), [expected]) <= tolerance


def test_vectors_do_not_depend_on_the_batch(tiny, sentences, any_kernel):
    assert_independent(tiny.bilm, sentences, 1e-6)
    assert_independent_of_words_before(tiny.bilm, sentences, 1e-6)


@pytest.mark.slow
def test_vectors_do_not_depend_on_the_batch_at_published_size(published, sentences):
    assert_independent(published, sentences[:8], 1e-5)
    assert_independent_of_words_before(published, sentences[:6], 1e-5)


@pytest.mark.slow
def test_vectors_do_not_depend_on_the_batch_in_int8(published, sentences):
    published.precision = "int8"
    assert_independent(published, sentences[:8], 1e-5)


def test_vectors_do_not_depend_on_words_before_in_int8(published, sentences):
    published.precision = "int8"
    # Rounding to 8 bits can turn a difference in the last bit into a whole step.
    assert_independent_of_words_before(published, sentences[:6], 0.05)


@pytest.mark.parametrize(
    "cache_words",
    [0, 8, 2**15, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 10, 12))],
)
def test_the_same_call_gives_the_same_bits(published, any_kernel, cache_words):
    published.cache_words = cache_words
    first = published.embed(A)
    assert same_bits(published.embed(A), first)
    for others in ([B], [B, C], [B, A[:1]], [C, A[2:], B]):
        for sentences in others:
            published.embed(sentences)
        again = published.embed(A)
        assert difference(again, first) <= 1e-5  # words may have been computed again
        assert same_bits(published.embed(A), again)


@pytest.mark.parametrize("cache_words", [0, 1, 3, 20, 2**15])
def test_vectors_do_not_depend_on_the_cache_size(tiny, sentences, cache_words):
    expected = tiny.bilm.embed(sentences)
    tiny.bilm.cache_words = cache_words
    for _ in range(2):
        found = [tiny.bilm.embed([sentence])[0] for sentence in sentences]
        assert difference(found, expected) <= 1e-6
        assert difference(tiny.bilm.embed(sentences), expected) <= 1e-6
