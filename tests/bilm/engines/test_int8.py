"""Inference with 8-bit LSTMs."""

import numpy as np
import pytest
from helpers.vectors import A, difference


def test_int8_is_close_to_float32(published, sentences):
    exact = np.concatenate(published.embed(sentences), 1)
    published.precision = "int8"
    found = np.concatenate(published.embed(sentences), 1)
    assert np.array_equal(found[0], exact[0])
    assert not np.array_equal(found[1:], exact[1:])
    norms = np.linalg.norm(found, axis=-1) * np.linalg.norm(exact, axis=-1)
    cosines = (found * exact).sum(-1) / norms  # (n_layers + 1, n_tokens)
    assert (cosines.mean(1) > 0.998).all()


def test_int8_carries_states_as_float32_does(published):
    text = [["One", "text"], ["in", "two", "rows"]]
    exact = [published.embed(text, stateful=True) for _ in range(3)]
    published.precision = "int8"
    published.reset_state()
    found = [published.embed(text, stateful=True) for _ in range(3)]
    assert difference(found[2], exact[2]) < 0.1 * difference(exact[2], exact[0])


def test_int8_is_refused_in_float64(tiny):
    tiny.bilm.double().precision = "int8"
    with pytest.raises(ValueError, match="int8 needs a float32 model on a CPU"):
        tiny.bilm.embed(A)
