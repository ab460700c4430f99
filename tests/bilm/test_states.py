"""LSTM states that are carried from call to call."""

import copy

import numpy as np
import pytest
import torch
from helpers.vectors import A, B, C, difference, same_bits

from spacy_elmo.bilm.state import State


def vectors_of(bilm, sentences, state):
    layers, state = bilm.run(sentences, state)
    return [x.transpose(0, 1).numpy() for x in layers], state


def test_rows_continue_where_the_last_stateful_call_left_them(tiny):
    bilm, reference = tiny
    calls = [A, [["Row", "zero"]], [["x"], ["y"], ["z"], ["new", "row"]], [], B, A]
    state = None
    for sentences in calls:
        expected, state = reference.embed(sentences, state)
        found = bilm.embed(sentences, stateful=True, max_batch_tokens=4)
        assert len(found) == len(expected)
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)


def test_new_rows_start_from_zero(tiny):
    tiny.bilm.embed([["one", "row"]], stateful=True)
    found = tiny.bilm.embed([["first"], ["second"]], stateful=True)
    expected = tiny.bilm.embed([["first"], ["second"]])
    assert difference(found[1:], expected[1:]) <= 1e-6
    assert difference(found[:1], expected[:1]) > 1e-3


def test_rows_continue_after_the_model_was_converted(tiny):
    tiny.bilm.embed(A, stateful=True)
    expected = tiny.bilm.embed(B, stateful=True)
    tiny.bilm.reset_state()
    tiny.bilm.embed(A, stateful=True)
    tiny.bilm.double()
    assert difference(tiny.bilm.embed(B, stateful=True), expected) <= 1e-5


def test_reset_forgets_all_rows(tiny):
    expected = tiny.bilm.embed(A, stateful=True)
    assert difference(expected, tiny.bilm.embed(A)) <= 1e-6
    assert difference(tiny.bilm.embed(A, stateful=True), expected) > 1e-3
    tiny.bilm.reset_state()
    assert same_bits(tiny.bilm.embed(A, stateful=True), expected)


def test_stateless_calls_neither_use_nor_change_the_state(tiny):
    first, stateless = tiny.bilm.embed(A, stateful=True), tiny.bilm.embed(B)
    second = tiny.bilm.embed(A, stateful=True)
    assert difference(second, first) > 1e-3
    tiny.bilm.reset_state()
    tiny.bilm.embed(A, stateful=True)
    assert same_bits(tiny.bilm.embed(B), stateless)
    tiny.bilm.run(B)
    tiny.bilm(tiny.bilm.prepare(B))
    assert same_bits(tiny.bilm.embed(A, stateful=True), second)


def test_failed_calls_do_not_change_the_state(tiny):
    tiny.bilm.embed(A, stateful=True)
    second = tiny.bilm.embed(B, stateful=True)
    tiny.bilm.reset_state()
    tiny.bilm.embed(A, stateful=True)
    with pytest.raises(ValueError):
        tiny.bilm.embed([["fine"], [None]], stateful=True)
    assert same_bits(tiny.bilm.embed(B, stateful=True), second)


@pytest.mark.parametrize("double", [False, True])
def test_run_has_no_side_effects(tiny, double):
    bilm = tiny.bilm.double() if double else tiny.bilm
    zero = State.zeros(bilm.config.lstm, 2, bilm.weight.detach())
    first, after = vectors_of(bilm, B, zero)
    assert not zero.h.any() and not zero.c.any()
    kept = copy.deepcopy(after)
    second, later = vectors_of(bilm, C, after)
    assert torch.equal(kept.h, after.h) and torch.equal(kept.c, after.c)
    assert not torch.equal(later.h, after.h)
    assert same_bits(vectors_of(bilm, C, after)[0], second)
    expected = [bilm.embed(sentences, stateful=True) for sentences in (B, C)]
    assert difference(first + second, expected[0] + expected[1]) <= 1e-6


def test_run_returns_unused_rows_unchanged(tiny):
    zero = State.zeros(tiny.bilm.config.lstm, 0, tiny.bilm.weight.detach())
    _, state = tiny.bilm.run(A, zero)
    assert state.n_rows == 3
    _, later = tiny.bilm.run(A[:1], state)
    assert torch.equal(later.h[:, :, 1:], state.h[:, :, 1:])
    assert torch.equal(later.c[:, :, 1:], state.c[:, :, 1:])
    assert not torch.equal(later.h[:, :, 0], state.h[:, :, 0])
    assert tiny.bilm.run(A)[1] is None
