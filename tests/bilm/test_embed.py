"""What embed promises besides being right: a sentence's vectors depend on nothing but
the sentence, states are carried as told, and no cache or thread shows."""

import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from spacy_elmo.bilm import load_bilm
from spacy_elmo.bilm.engines import engine, kernels, threads
from spacy_elmo.bilm.engines.word_cache import WordCache
from spacy_elmo.bilm.state import State

A = [["The", "cat", "sat"], [], ["on"]]
B = [["Another", "text"], ["with", "more", "words", "in", "it"]]
C = [["A", "third"], ["one", "."]]


def difference(found, expected):
    assert [x.shape for x in found] == [x.shape for x in expected]
    return max(np.abs(x - y).max(initial=0) for x, y in zip(found, expected))


def same_bits(found, expected):
    return all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


def vectors_of(bilm, sentences, state):
    layers, state = bilm.run(sentences, state)
    return [x.transpose(0, 1).numpy() for x in layers], state


def test_sentences_may_be_generators(tiny):
    found = tiny.bilm.embed((word for word in sentence) for sentence in A)
    assert same_bits(found, tiny.bilm.embed(A))


# A sentence's vectors depend on the sentence alone


def assert_independent(bilm, sentences, tolerance):
    together = bilm.embed(sentences)
    assert max(np.abs(x).max(initial=0) for x in together) > 0.5  # not just zeros
    for max_batch_tokens in (1, 100):
        found = bilm.embed(sentences, max_batch_tokens=max_batch_tokens)
        assert difference(found, together) <= tolerance
    turned = bilm.embed([["more"] * 30, *sentences[::-1], ["else"]])[-2:0:-1]
    assert difference(turned, together) <= tolerance


def assert_independent_of_words_before(bilm, sentences, tolerance):
    together = bilm.embed(sentences)
    bilm.clear_cache()
    for number, sentence in enumerate(sentences * 2):
        if number >= len(sentences):
            bilm.clear_cache()
        expected = together[number % len(sentences)]
        assert difference(bilm.embed([sentence]), [expected]) <= tolerance


@pytest.mark.parametrize("packed", [True, False])
def test_vectors_do_not_depend_on_the_batch(tiny, sentences, monkeypatch, packed):
    monkeypatch.setattr(kernels, "_packed", packed and kernels._packed)
    assert_independent(tiny.bilm, sentences, 1e-6)
    assert_independent_of_words_before(tiny.bilm, sentences, 1e-6)


def test_vectors_do_not_depend_on_the_batch_at_published_size(published, sentences):
    assert_independent(published, sentences, 1e-5)
    assert_independent_of_words_before(published, sentences, 1e-5)


def test_vectors_do_not_depend_on_the_batch_in_int8(published, sentences):
    published.precision = "int8"
    assert_independent(published, sentences, 1e-5)


def test_vectors_do_not_depend_on_words_before_in_int8(published, sentences):
    published.precision = "int8"
    # Rounding to 8 bits can turn a difference in the last bit into one of its steps.
    assert_independent_of_words_before(published, sentences, 0.05)


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


# Calls repeated


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("cache_words", [0, 3, 8, 10, 12, 2**15])
def test_the_same_call_gives_the_same_bits(published, monkeypatch, packed, cache_words):
    monkeypatch.setattr(kernels, "_packed", packed and kernels._packed)
    published.cache_words = cache_words
    first = published.embed(A)
    assert same_bits(published.embed(A), first)
    for others in ([B], [B, C], [B, A[:1]], [C, A[2:], B]):
        for sentences in others:
            published.embed(sentences)
        again = published.embed(A)
        assert difference(again, first) <= 1e-5  # words may have been computed anew
        assert same_bits(published.embed(A), again)


@pytest.mark.parametrize("cache_words", [0, 1, 3, 20, 2**15])
def test_cache_size_does_not_show(tiny, sentences, cache_words):
    expected = tiny.bilm.embed(sentences)
    tiny.bilm.cache_words = cache_words
    for _ in range(2):
        found = [tiny.bilm.embed([sentence])[0] for sentence in sentences]
        assert difference(found, expected) <= 1e-6
        assert difference(tiny.bilm.embed(sentences), expected) <= 1e-6


def test_copies_and_pickles_give_the_same(tiny, sentences):
    expected = tiny.bilm.embed(sentences)
    tiny.bilm.embed(sentences, stateful=True)
    for other in (copy.deepcopy(tiny.bilm), pickle.loads(pickle.dumps(tiny.bilm))):
        assert difference(other.embed(sentences), expected) <= 1e-6
        # what a stateful call left behind stays behind
        assert difference(other.embed(sentences, stateful=True), expected) <= 1e-6
        with torch.no_grad():
            other.forward_layers[0].weight.zero_()
        assert difference(other.embed(sentences), expected) > 1e-2
    assert difference(tiny.bilm.embed(sentences), expected) == 0


# The word cache


@pytest.fixture
def encoded(tiny, monkeypatch):
    """The keys that were encoded, in order."""
    keys = []
    original = tiny.bilm.encoder.encode

    def encode(some):
        keys.extend(some)
        return original(some)

    monkeypatch.setattr(tiny.bilm.encoder, "encode", encode)
    return keys


def test_cached_words_are_not_computed_again(tiny, encoded):
    tiny.bilm.embed([["the", "cat"], ["the", "the"]])
    assert encoded.count("the") == encoded.count("cat") == 1
    encoded.clear()
    tiny.bilm.embed([["the", "dog", "cat", "dog"]])
    tiny.bilm.embed([["dog", "cat"]], stateful=True)
    assert encoded == ["dog"]


def test_cache_holds_no_more_words_than_told(tiny, encoded):
    tiny.bilm.cache_words = 6
    for number in range(10):
        tiny.bilm.embed([[f"w{number}"]])
        assert len(tiny.bilm._get_runtime().words) <= 6
    tiny.bilm.embed([["many"] + [f"w{number}" for number in range(10)]])
    assert len(tiny.bilm._get_runtime().words) <= 6
    encoded.clear()
    tiny.bilm.embed([["w9"]])
    assert "w9" not in encoded


@torch.no_grad()
def test_a_cache_that_starts_anew_leaves_what_others_read(tiny):
    encoder = tiny.bilm.encoder
    cache = WordCache(encoder, encoder, 3)
    table, index = cache.lookup([["a", "b"]])
    before = table[index[0]]
    cache.lookup([["c", "d"]])  # no room for four
    assert torch.equal(table[index[0]], before)


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


# States


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


def test_failed_calls_leave_the_state(tiny):
    tiny.bilm.embed(A, stateful=True)
    second = tiny.bilm.embed(B, stateful=True)
    tiny.bilm.reset_state()
    tiny.bilm.embed(A, stateful=True)
    with pytest.raises(ValueError):
        tiny.bilm.embed([["fine"], [None]], stateful=True)
    assert same_bits(tiny.bilm.embed(B, stateful=True), second)


@pytest.mark.parametrize("double", [False, True])
def test_run_is_pure(tiny, double):
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


def test_run_hands_rows_on_that_it_does_not_use(tiny):
    zero = State.zeros(tiny.bilm.config.lstm, 0, tiny.bilm.weight.detach())
    _, state = tiny.bilm.run(A, zero)
    assert state.n_rows == 3
    _, later = tiny.bilm.run(A[:1], state)
    assert torch.equal(later.h[:, :, 1:], state.h[:, :, 1:])
    assert torch.equal(later.c[:, :, 1:], state.c[:, :, 1:])
    assert not torch.equal(later.h[:, :, 0], state.h[:, :, 0])
    assert tiny.bilm.run(A)[1] is None


# What goes in and comes out


@pytest.mark.parametrize(
    "sentences, message",
    [
        ("a string", "list of sentences, found a string"),
        ([["fine"], "a string"], "sentence 1 is a string"),
        ([["fine"], ["fine", 7]], "sentence 1 has 7, of type int"),
        ([["fine", None]], "sentence 0 has None"),
        ([[b"bytes"]], "sentence 0 has b'bytes', of type bytes"),
    ],
)
def test_bad_sentences_are_told(tiny, sentences, message):
    for stateful in (False, True):
        with pytest.raises(ValueError, match=message):
            tiny.bilm.embed(sentences, stateful)
    for function in (tiny.bilm.run, tiny.bilm.prepare):
        with pytest.raises(ValueError, match=message):
            function(sentences)


@pytest.mark.parametrize("max_batch_tokens", [0, -1])
def test_bad_batch_sizes_are_told(tiny, max_batch_tokens):
    message = f"max_batch_tokens is {max_batch_tokens}; expected 1 or more"
    for function in (tiny.bilm.embed, tiny.bilm.run):
        with pytest.raises(ValueError, match=message):
            function(A, max_batch_tokens=max_batch_tokens)


def test_bad_precisions_are_told(tiny, tmp_path):
    message = "precision is 'bf16'; expected one of .*float32.*int8"
    tiny.bilm.save(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_bilm(tmp_path, precision="bf16")
    tiny.bilm.precision = "bf16"
    with pytest.raises(ValueError, match=message):
        tiny.bilm.embed(A)


def test_int8_is_refused_where_it_cannot_be(tiny):
    tiny.bilm.double().precision = "int8"
    with pytest.raises(ValueError, match="int8 needs a float32 model on a CPU"):
        tiny.bilm.embed(A)


@pytest.mark.parametrize("stateful", [False, True])
def test_no_sentences_no_vectors(tiny, stateful):
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
def test_arrays_are_plain_and_their_own(tiny, sentences, stateful, double):
    bilm = tiny.bilm.double() if double else tiny.bilm
    arrays = bilm.embed([*sentences, ["twice"], ["twice"]], stateful)
    kept = copy.deepcopy(arrays)
    for number, array in enumerate(arrays):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous and array.flags.writeable
        array[:] = np.nan
        for other, expected in zip(arrays[number + 1 :], kept[number + 1 :]):
            assert np.array_equal(other, expected)
    again = bilm.embed(sentences)  # nothing inside was overwritten either
    assert all(np.isfinite(x).all() for x in again)


def test_an_array_keeps_no_batch_in_memory(tiny):
    arrays = tiny.bilm.embed([["one"], ["two", "words"], *[["a"] * 9] * 20])
    for array in arrays:
        if isinstance(array.base, torch.Tensor):
            assert array.base.untyped_storage().nbytes() == array.nbytes


def test_any_sequences_of_words_will_do(tiny):
    expected = tiny.bilm.embed(B)
    assert same_bits(tiny.bilm.embed(tuple(map(tuple, B))), expected)
    assert same_bits(tiny.bilm.embed([np.array(s) for s in B]), expected)


def test_embed_leaves_no_graph(tiny):
    tiny.bilm.embed(A, stateful=True)
    layers, state = tiny.bilm.run(A, tiny.bilm._state)
    assert not any(x.requires_grad for x in [*layers, state.h, state.c])


# Threads and processes


@pytest.mark.parametrize("parallel_from", [0, 2**60])
@pytest.mark.parametrize("cache_words", [5, 2**15])
def test_embed_from_many_threads(
    tiny, sentences, monkeypatch, two_threads, parallel_from, cache_words
):
    monkeypatch.setattr(engine, "PARALLEL_FROM", parallel_from)
    expected = [tiny.bilm.embed([sentence])[0] for sentence in sentences]
    tiny.bilm.cache_words = cache_words
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            calls = [[sentence] for sentence in sentences * 4]
            found = [x[0] for x in pool.map(tiny.bilm.embed, calls)]
        assert difference(found, expected * 4) <= 1e-6
    finally:
        sys.setswitchinterval(interval)


def test_each_direction_has_its_own_half_of_the_threads(two_threads, monkeypatch):
    """Also after computing: with all of them in both, twice as many threads as there
    are cores would wait for each other."""
    monkeypatch.setattr(threads, "_workers", None)  # start them here
    matrix = torch.ones(600, 600)

    def work():
        matrix.exp().sum()  # large enough for several threads
        return torch.get_num_threads()

    assert threads.side_by_side([work, work], parallel=True) == [1, 1]
    assert torch.get_num_threads() == 2


def test_embed_leaves_the_number_of_threads(published, sentences, monkeypatch):
    monkeypatch.setattr(threads, "_workers", None)  # start them here
    published.embed(sentences * 4)
    assert threads._workers is not None
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 2


@pytest.mark.parametrize("parallel_from", [0, 2**60])
def test_embed_under_inference_mode(
    tiny, sentences, monkeypatch, two_threads, parallel_from
):
    expected = copy.deepcopy(tiny.bilm).embed(sentences)
    monkeypatch.setattr(engine, "PARALLEL_FROM", parallel_from)
    with torch.inference_mode():
        found = tiny.bilm.embed(sentences[:10], stateful=True)
    assert difference(found, expected[:10]) <= 1e-6
    tiny.bilm.embed(sentences, stateful=True)
    assert difference(tiny.bilm.embed(sentences), expected) <= 1e-6


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_embed_in_a_forked_process(published, sentences):
    expected = published.embed(sentences * 4)[:20]
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        published.clear_cache()
        sender.send(published.embed(sentences * 4)[:20])

    process = context.Process(target=work, daemon=True)
    process.start()
    try:
        assert receiver.poll(30), "the forked process hangs"
        assert difference(receiver.recv(), expected) <= 1e-5
    finally:
        process.kill()
        process.join()
