"""Compare the biLM with vectors of the original program, with a slow reference in numpy
and with itself in float64."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.random_models import CALLS, for_random_models

from spacy_elmo.bilm import load_bilm
from spacy_elmo.bilm.engines import cpu, kernels
from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.word_ids import ByteIds

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "bilm-tf"


def differentiate(bilm, sentences, state=None):
    output = bilm(bilm.prepare(sentences), state)
    layers = output.layers.detach().numpy()  # (n_layers + 1, n_rows, n_steps, width)
    rows = [layers[:, r, 1 : len(s) + 1] for r, s in enumerate(sentences)]
    return rows, output.state


def differentiate_stateful(bilm, calls):
    """Compute the vectors of embed(stateful=True) with the differentiable model."""
    state = State.zeros(bilm.config.lstm, 0, bilm.weight.detach())
    for sentences in calls:
        state = state.resized(len(sentences), bilm.weight.detach())
        rows = range(len(sentences))
        vectors, new = differentiate(bilm, sentences, state.take(rows))
        state.put(rows, State(new.h.detach(), new.c.detach()))
        yield vectors


def some(at_limit):
    return bool(at_limit.any()) and not bool(at_limit.all())


def assert_close(found, expected, tolerance, what=""):
    assert len(found) == len(expected)
    for number, (x, y) in enumerate(zip(found, expected)):
        assert x.shape == y.shape, f"{what}: sentence {number}"
        error = np.abs(x - y).max(initial=0)
        assert error <= tolerance, f"{what}: sentence {number} off by {error}"


def assert_all_paths_agree(pair, calls, tolerance=1e-5):
    bilm, reference = pair
    state = None
    differentiated = differentiate_stateful(bilm, calls)
    for sentences in calls:
        expected, _ = reference.embed(sentences)
        found = bilm.embed(sentences)
        assert_close(found, expected, tolerance, "embed")
        found, _ = differentiate(bilm, sentences)
        assert_close(found, expected, tolerance, "forward")
        expected, state = reference.embed(sentences, state)
        found = bilm.embed(sentences, stateful=True)
        assert_close(found, expected, tolerance, "stateful embed")
        found = next(differentiated)
        assert_close(found, expected, tolerance, "forward from a state")


@pytest.mark.skipif(not FIXTURES.exists(), reason=f"no reference vectors: {FIXTURES}")
def test_stateful_batches_reproduce_the_original_program():
    bilm = load_bilm(FIXTURES)
    expected = np.load(FIXTURES / "top_layer.npz")
    batches = json.loads((FIXTURES / "sentences.json").read_text("utf8"))
    assert len(expected.files) == sum(map(len, batches)) == 12
    for i, batch in enumerate(batches):
        vectors = bilm.embed([text.split() for text in batch], stateful=True)
        for k, layers in enumerate(vectors):
            top = expected[f"batch{i}_row{k}"]
            np.testing.assert_allclose(layers[-1], top, rtol=0, atol=1e-6)


@for_random_models
def test_random_models_agree_with_the_reference(pair, calls):
    assert_all_paths_agree(pair, calls)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("skip", [True, False])
def test_any_depth_agrees_with_the_reference(random_pair, n_layers, skip):
    lstm = {"n_layers": n_layers, "use_skip_connections": skip}
    assert_all_paths_agree(random_pair(n_layers, lstm=lstm), CALLS)


SIX_FILTERS = [[3, 2], [1, 1], [4, 3]]


@pytest.mark.parametrize(
    "char_cnn",
    [
        {"activation": "relu"},
        {"activation": "tanh"},
        {"n_highway": 0},
        {"n_highway": 2},
        {"filters": [[1, 5]]},
        {"filters": [[6, 5]], "max_characters_per_token": 6},
        {"filters": SIX_FILTERS},
        {"n_characters": 261},
        {"n_characters": 262},
        {"max_characters_per_token": 50},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_rows", [261, 262])
def test_any_encoder_agrees_with_the_reference(random_pair, char_cnn, n_rows):
    assert_all_paths_agree(random_pair(5, n_rows=n_rows, char_cnn=char_cnn), CALLS)


def test_no_projection_if_the_number_of_filters_is_the_lstm_size(random_pair):
    pair = random_pair(6, char_cnn={"filters": SIX_FILTERS}, lstm={"projection_dim": 6})
    assert pair.bilm.encoder.projection is None
    assert_all_paths_agree(pair, CALLS)


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clip", [0.2, None])
def test_lstm_of_equal_dimensions_has_the_projection_on_file(
    random_pair, projection, clip
):
    lstm = {"dim": 5, "projection_dim": 5, "proj_clip": clip, "cell_clip": clip}
    pair = random_pair(8, lstm_projection=projection, lstm=lstm)
    assert (pair.bilm.forward_layers[0].projection is not None) == projection
    assert_all_paths_agree(pair, CALLS)


@pytest.mark.parametrize("n_bytes", [46, 47, 48, 49, 50, 51])
def test_words_around_the_limit_agree_with_the_reference(random_pair, n_bytes):
    pair = random_pair(9, char_cnn={"max_characters_per_token": 50})
    words = ["x" * n_bytes, "é" * (n_bytes // 2), "가" * (n_bytes // 3) + "x"]
    assert_all_paths_agree(pair, [[words], *([[word]] for word in words)])


def test_words_are_cut_inside_a_character(tiny):
    encoder = tiny.bilm.encoder
    ids = encoder.encode(["a" + "각" * 16])[0].tolist()
    spelling = list(("a" + "각" * 16).encode())
    assert ids == [ByteIds.BEGIN_WORD, *spelling[:48], ByteIds.END_WORD]
    assert ids[-3:-1] == list("각".encode())[:2]


def test_a_word_that_looks_like_a_boundary_is_a_word(tiny):
    begin, other = tiny.bilm.embed([["<S>"], ["\x00"]])
    ids = tiny.bilm.encoder.encode(tiny.bilm.word_ids.keys(["<S>"]))
    assert len({tuple(row) for row in ids.tolist()}) == 3
    assert np.abs(begin - other).max() > 1e-3


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("parallel_from", [0, 2**60])
@pytest.mark.slow
def test_cpu_engine_agrees_with_float64_on_any_kernel_and_thread(
    random_pair, monkeypatch, two_threads, packed, parallel_from
):
    if packed and not kernels.PackedKernel.supported():
        pytest.skip("this build of torch has no packed kernels")
    used = set()
    for kernel in (kernels.PackedKernel, kernels.PlainKernel):

        def call(self, x, original=kernel.__call__):
            used.add((type(self).__name__, threading.current_thread().name[:10]))
            return original(self, x)

        monkeypatch.setattr(kernel, "__call__", call)
    monkeypatch.setattr(kernels, "has_packed_kernels", lambda: packed)
    monkeypatch.setattr(cpu, "PARALLEL_FROM", parallel_from)
    for seed in range(5):
        lstm = {"dim": 7, "cell_clip": 0.4, "proj_clip": 0.3}
        bilm, _ = random_pair(seed, scale=0.7, lstm=lstm)
        found = [bilm.embed(sentences) for sentences in CALLS]
        assert some(np.abs(found[0][0][1]) == np.float32(0.3))
        bilm.double()
        for vectors, sentences in zip(found, CALLS):
            assert_close(vectors, differentiate(bilm, sentences)[0], 1e-5)
    assert any(kernel == "PackedKernel" for kernel, _ in used) == packed
    assert parallel_from or any(name == "spacy-elmo" for _, name in used)


@pytest.mark.slow
def test_a_long_sentence_agrees_with_float64(tiny):
    long = [f"w{number % 50}" for number in range(600)]
    found = tiny.bilm.embed([long, ["short"]], stateful=True)
    again = tiny.bilm.embed([["on"], ["it", "goes"]], stateful=True)
    tiny.bilm.double()
    calls = [[long, ["short"]], [["on"], ["it", "goes"]]]
    expected = list(differentiate_stateful(tiny.bilm, calls))
    assert_close(found, expected[0], 1e-5)
    assert_close(again, expected[1], 1e-5)


@pytest.mark.slow
def test_float64_is_exact(random_pair):
    for seed in range(5):
        bilm, reference = random_pair(seed)
        bilm.double()
        state = State.zeros(bilm.config.lstm, 0, bilm.weight.detach())
        expected_state = None
        for sentences in CALLS:
            expected, _ = reference.embed(sentences)
            found, _ = bilm.run(sentences)
            assert all(x.dtype == torch.float64 for x in found)
            found = [x.transpose(0, 1).numpy() for x in found]
            assert_close(found, expected, 1e-12)
            assert_close(bilm.embed(sentences), expected, 1e-5)
            assert_close(differentiate(bilm, sentences)[0], expected, 1e-12)
            expected, expected_state = reference.embed(sentences, expected_state)
            found, state = bilm.run(sentences, state)
            found = [x.transpose(0, 1).numpy() for x in found]
            assert_close(found, expected, 1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_gpu_agrees_with_the_reference(random_pair):
    for seed in range(5):
        pair = random_pair(seed)
        pair.bilm.cuda()
        for stateful in (False, True):
            state = None
            for sentences in CALLS:
                expected, new = pair.reference.embed(sentences, state)
                state = new if stateful else None
                found = pair.bilm.embed(sentences, stateful)
                assert_close(found, expected, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_gradients_of_every_parameter(random_pair, activation):
    bilm, _ = random_pair(
        28,  # a seed with some values at each clip
        n_words=6,
        scale=1.0,
        lstm={
            "dim": 3,
            "projection_dim": 2,
            "n_layers": 2,
            "cell_clip": 0.4,
            "proj_clip": 0.3,
            "use_skip_connections": True,
        },
        char_cnn={
            "activation": activation,
            "embedding": {"dim": 1},
            "filters": [[1, 1], [2, 2]],
            "max_characters_per_token": 8,
            "n_highway": 1,
        },
    )
    bilm.double()
    batch = bilm.prepare([["The", "cat", "sat"], ["on"]])
    layers, state = bilm(batch)
    assert some(state.c.abs() == bilm.config.lstm.cell_clip)
    assert some(layers[1, 0].abs() == bilm.config.lstm.proj_clip)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(layers.shape, generator=generator, dtype=torch.float64)
    weights[:, 1, batch.lengths[1] :] = 0  # padding
    targets = torch.tensor([3, 4, 1, 0, 2, 5, 3, 4])

    def function(*_):
        layers, state = bilm(batch)
        forward, backward = layers[-1, 0].chunk(2, -1)
        hidden = torch.cat([forward[:-1], backward[1:]])
        return (
            (layers * weights).sum() + state.h.sum() + state.c.square().sum(),
            bilm.softmax.loss(hidden, targets),
        )

    parameters = dict(bilm.named_parameters())
    gradients = torch.autograd.grad(sum(function()), list(parameters.values()))
    for name, gradient in zip(parameters, gradients):
        assert gradient.abs().max() > 1e-3, f"nothing depends on {name}"
    assert torch.autograd.gradcheck(function, list(parameters.values()))
