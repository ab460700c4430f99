"""Random models and sentences, for tests that compare two computations."""

import pytest
from helpers.models import load_random
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

# Each character has 3 bytes, so that some models cut this word inside a character.
HANGUL = "동해물과백두산이마르고닳도록하느님이보우하사"
ODD_WORDS = ["", "<S>", "</S>", "a", "é", HANGUL, "x" * 60, "\ud800", "a\udc00b", "𝔘"]
CALLS = [
    [["The", "cat", HANGUL], [], ["", "<S>", "\ud800", "x" * 60, "naïve"]],
    [["sat"]],
    [["on"], ["a", "mat", "."], [], ["A", "new", "row"]],
]

_words = st.one_of(st.sampled_from(ODD_WORDS), st.text(max_size=14))
_batches = st.lists(st.lists(_words, max_size=4), min_size=1, max_size=3)


def for_random_models(test):
    """Make a slow test of a function that takes a Pair and the sentences of two or
    three calls."""

    # Only Phase.generate, because shrinking takes minutes and cannot simplify a seed.
    @pytest.mark.slow
    @settings(max_examples=40, database=None, phases=[Phase.generate])
    @given(
        seed=st.integers(0, 2**32 - 1),
        calls=st.lists(_batches, min_size=2, max_size=3),
        n_rows=st.sampled_from([261, 262]),
    )
    def run(seed, calls, n_rows):
        # Larger weights may make a model chaotic, so that rounding errors grow.
        test(load_random(seed, n_rows=n_rows, scale=0.4), calls)

    return run
