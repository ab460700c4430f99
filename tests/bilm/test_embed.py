"""The arguments and results of embed."""

import copy
import pickle

import numpy as np
import pytest
import torch
from helpers.vectors import A, B, difference, same_bits

from spacy_elmo.bilm import load_bilm
from spacy_elmo.bilm.engines import cpu, kernels
from spacy_elmo.bilm.state import State


def test_sentences_may_be_generators(tiny):
    found = tiny.bilm.embed((word for word in sentence) for sentence in A)
    assert same_bits(found, tiny.bilm.embed(A))


@pytest.mark.parametrize(
    "sentences, message",
    [
        ("a string", "list of sentences, found a string"),
        ([["fine"], "a string"], "sentence 1 is a string"),
        ([["fine"], ["fine", 7]], "sentence 1 has 7, of type int"),
        ([["fine", None]], "sentence 0 has None"),
        ([[b"bytes"]], "sentence 0 has b'bytes', of type bytes"),
        (None, "expected sentences, found an object of type NoneType"),
        ([["fine"], 7], "sentence 1: expected a list of words, found .* type int"),
    ],
)
def test_bad_sentences_are_refused(tiny, sentences, message):
    for stateful in (False, True):
        with pytest.raises(ValueError, match=message):
            tiny.bilm.embed(sentences, stateful)
    for function in (tiny.bilm.run, tiny.bilm.prepare):
        with pytest.raises(ValueError, match=message):
            function(sentences)


@pytest.mark.parametrize("max_batch_tokens", [0, -1])
def test_bad_batch_sizes_are_refused(tiny, max_batch_tokens):
    message = f"max_batch_tokens is {max_batch_tokens}; expected 1 or more"
    for function in (tiny.bilm.embed, tiny.bilm.run):
        with pytest.raises(ValueError, match=message):
            function(A, max_batch_tokens=max_batch_tokens)


def test_bad_precisions_are_refused(tiny, tmp_path):
    message = "precision is 'bf16'; expected one of .*float32.*int8"
    tiny.bilm.save(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_bilm(tmp_path, precision="bf16")
    tiny.bilm.precision = "bf16"
    with pytest.raises(ValueError, match=message):
        tiny.bilm.embed(A)


@pytest.mark.parametrize("stateful", [False, True])
def test_no_sentences_give_no_vectors(tiny, stateful):
    assert tiny.bilm.embed([], stateful) == []
    assert tiny.bilm.embed((), stateful) == []


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_empty_sentences_have_empty_vectors(tiny, stateful, double):
    bilm = tiny.bilm.double() if double else tiny.bilm
    for sentences in ([[]], [[], []], [[], ["a"], []]):
        found = bilm.embed(sentences, stateful)
        assert [x.shape for x in found] == [(3, len(s), 10) for s in sentences]


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_arrays_are_contiguous_and_share_no_memory(tiny, sentences, stateful, double):
    bilm = tiny.bilm.double() if double else tiny.bilm
    arrays = bilm.embed([*sentences, ["twice"], ["twice"]], stateful)
    kept = copy.deepcopy(arrays)
    for number, array in enumerate(arrays):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous and array.flags.writeable
        array[:] = np.nan
        for other, expected in zip(arrays[number + 1 :], kept[number + 1 :]):
            assert np.array_equal(other, expected)
    again = bilm.embed(sentences)  # the caches of the model were not overwritten either
    assert all(np.isfinite(x).all() for x in again)


def test_an_array_does_not_keep_its_batch_in_memory(tiny):
    arrays = tiny.bilm.embed([["one"], ["two", "words"], *[["a"] * 9] * 20])
    for array in arrays:
        if isinstance(array.base, torch.Tensor):
            assert array.base.untyped_storage().nbytes() == array.nbytes


def test_tuples_are_accepted(tiny):
    expected = tiny.bilm.embed(B)
    assert same_bits(tiny.bilm.embed(tuple(map(tuple, B))), expected)
    assert same_bits(tiny.bilm.embed([np.array(s) for s in B]), expected)


def test_embed_leaves_no_graph(tiny):
    _, state = tiny.bilm.run(A, State.zeros(tiny.bilm.config.lstm, 3, tiny.bilm.weight))
    layers, state = tiny.bilm.run(A, state)
    assert not any(x.requires_grad for x in [*layers, state.h, state.c])


def test_copies_and_pickles_give_the_same_vectors(tiny, sentences):
    expected = tiny.bilm.embed(sentences)
    tiny.bilm.embed(sentences, stateful=True)
    for other in (copy.deepcopy(tiny.bilm), pickle.loads(pickle.dumps(tiny.bilm))):
        assert difference(other.embed(sentences), expected) <= 1e-6
        # The state of stateful calls is not copied, so this starts from zero states.
        assert difference(other.embed(sentences, stateful=True), expected) <= 1e-6
        with torch.no_grad():
            other.forward_layers[0].weight.zero_()
        assert difference(other.embed(sentences), expected) > 1e-2
    assert difference(tiny.bilm.embed(sentences), expected) == 0


# Changed weights


def add_in_place(bilm, part):
    with torch.no_grad():
        for parameter in bilm.get_submodule(part).parameters():
            parameter.add_(0.1)


def step(bilm, part):
    optimizer = torch.optim.Adam(bilm.get_submodule(part).parameters(), lr=0.1)
    bilm(bilm.prepare(A)).layers.square().sum().backward()
    optimizer.step()


def load_other_state(bilm, part, assign=False):
    state = bilm.get_submodule(part).state_dict()
    state = {name: tensor + 0.1 for name, tensor in state.items()}
    bilm.get_submodule(part).load_state_dict(state, assign=assign)


def assign_other_state(bilm, part):
    load_other_state(bilm, part, assign=True)


@pytest.mark.parametrize(
    "change", [add_in_place, step, load_other_state, assign_other_state]
)
@pytest.mark.parametrize("part", ["encoder", "forward_layers", "backward_layers.1"])
def test_vectors_follow_changed_weights(tiny, change, part):
    bilm = tiny.bilm
    before = bilm.embed(A)
    change(bilm, part)
    found = bilm.embed(A)
    assert difference(found, before) > 1e-2
    layers = bilm(bilm.prepare(A)).layers.detach().numpy()
    expected = [layers[:, r, 1 : len(words) + 1] for r, words in enumerate(A)]
    assert difference(found, expected) <= 1e-5


def test_embed_ignores_autocast(tiny, sentences, monkeypatch):
    bilm = copy.deepcopy(tiny.bilm)
    # So that autocast has an effect, as on GPUs and on machines without oneDNN.
    monkeypatch.setattr(kernels, "has_packed_kernels", lambda: False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = bilm.embed(sentences)
    expected = tiny.bilm.embed(sentences)
    assert difference(found, expected) <= 1e-5
    assert difference(bilm.embed(sentences), expected) <= 1e-5


@pytest.mark.parametrize("parallel_from", [0, 2**60])
def test_embed_under_inference_mode(
    tiny, sentences, monkeypatch, two_threads, parallel_from
):
    expected = copy.deepcopy(tiny.bilm).embed(sentences)
    monkeypatch.setattr(cpu, "PARALLEL_FROM", parallel_from)
    with torch.inference_mode():
        found = tiny.bilm.embed(sentences[:10], stateful=True)
    assert difference(found, expected[:10]) <= 1e-6
    tiny.bilm.embed(sentences, stateful=True)
    assert difference(tiny.bilm.embed(sentences), expected) <= 1e-6
