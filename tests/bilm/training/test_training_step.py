"""Compare a training step with autograd on a plain computation of the loss."""

import pytest
import torch
from helpers.windows import N_ROWS, dense, make_bilm, make_state, make_window

from spacy_elmo.bilm import (
    WordsConfig,
)
from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.training.step import Dropout, train_step

KINDS = ["full", "sampled", "adaptive"]


def plain_losses(bilm, window, state, samples, dropout, monkeypatch):
    """Compute the summed loss of each direction with ProjectedLSTM.step, and count the
    clipped values of h and of c."""
    vectors = bilm.encoder(*window.ids)
    losses, n_clipped = [], [0, 0]
    for d, layers in enumerate(bilm.directions):
        x = vectors[window.tokens[d]]
        for j, layer in enumerate(layers):
            h, c = state.h[d, j], state.c[d, j]
            x = dropout(x, d)
            outputs = []
            for t in range(len(x)):
                if window.keep is not None:
                    h, c = h * window.keep[t], c * window.keep[t]
                gates = x[t] @ layer.weight[: layer.n_in] + layer.bias
                h, c = layer.step(gates + h @ layer.weight[layer.n_in :], c)
                outputs.append(h)
                for k, clip in enumerate((layer.proj_clip, layer.cell_clip)):
                    if clip is not None:
                        n_clipped[k] += int(((h, c)[k].abs() == clip).sum())
            y = torch.stack(outputs)
            x = x + y if j and bilm.config.lstm.skip_connections else y
        if samples:
            draw = lambda device=None, d=d: samples[d]  # noqa: E731
            monkeypatch.setattr(bilm.softmax, "draw", draw)
        hidden = dropout(x, d).flatten(0, 1)
        losses.append(bilm.softmax.loss(hidden, window.targets[d].flatten()))
    return torch.stack(losses), n_clipped


def check_gradients(bilm, window, monkeypatch, *, rate=0.0, **options):
    state = make_state(bilm)
    random = torch.get_rng_state()
    step = train_step(bilm, window, state, Dropout(rate, 3, bilm.device), **options)
    torch.set_rng_state(random)
    samples = []
    if bilm.config.softmax.type == "sampled":
        samples = [bilm.softmax.draw() for _ in range(2)]
    losses, n_clipped = plain_losses(
        bilm, window, state, samples, Dropout(rate, 3, bilm.device), monkeypatch
    )
    layer = bilm.directions[0][0]
    assert list(map(bool, n_clipped)) == [
        clip is not None for clip in (layer.proj_clip, layer.cell_clip)
    ]
    torch.testing.assert_close(step.losses, losses)
    wanted = {n: p for n, p in bilm.named_parameters() if p.requires_grad}
    mean = losses.sum() / (2 * window.targets[0].numel())
    expected = torch.autograd.grad(
        mean, list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    assert set(step.gradients) <= set(wanted)
    for (name, weight), gradient in zip(wanted.items(), expected):
        found = dense(step.gradients.get(name, torch.zeros_like(weight)), weight)
        torch.testing.assert_close(found, gradient, msg=lambda m, n=name: f"{n}: {m}")
        if name.startswith(("forward_layers", "backward_layers")):
            assert gradient.abs().max() > 0, name


# A CPU runs each direction in a thread; a GPU runs both in the same operations.
stacked_or_not = pytest.mark.parametrize("stacked", [False, True])


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@stacked_or_not
def test_gradients_are_those_of_autograd(monkeypatch, kind, forget, rate, stacked):
    bilm = make_bilm(kind)
    window = make_window(bilm, forget=forget)
    check_gradients(bilm, window, monkeypatch, rate=rate, stacked=stacked)


@stacked_or_not
@pytest.mark.parametrize(
    "sizes",
    [
        {"n_layers": 1},
        {"n_layers": 3, "skip_connections": False},
        {"dim": 5, "projection": False},
        {"cell_clip": None, "forget_bias": 0.0},
        {"proj_clip": None},
        {"proj_clip": None, "cell_clip": None},
        {"encoder": WordsConfig(dim=4)},
        {"encoder": WordsConfig(dim=4, trainable=False)},
        {
            "encoder": WordsConfig(dim=5, trainable=False)
        },  # the encoder has no trainable weights
    ],
)
def test_gradients_of_other_sizes(monkeypatch, sizes, stacked):
    bilm = make_bilm(**sizes)
    check_gradients(bilm, make_window(bilm), monkeypatch, stacked=stacked)


@stacked_or_not
def test_loss_scale_does_not_change_the_gradients(monkeypatch, stacked):
    bilm = make_bilm()
    window = make_window(bilm)
    check_gradients(bilm, window, monkeypatch, loss_scale=1024.0, stacked=stacked)


@pytest.mark.parametrize("kind", KINDS)
@stacked_or_not
def test_frozen_gives_the_gradients_of_the_softmax(kind, stacked):
    bilm = make_bilm(kind)
    steps = []
    for frozen in (False, True):
        torch.manual_seed(1)
        dropout = Dropout(0.3, 0, bilm.device)
        state = State.zeros(bilm.config.lstm, N_ROWS, bilm.weight)
        options = {"frozen": frozen, "stacked": stacked}
        steps.append(train_step(bilm, make_window(bilm), state, dropout, **options))
    whole, part = steps
    names = {f"softmax.{name}" for name, _ in bilm.softmax.named_parameters()}
    assert set(part.gradients) == names
    torch.testing.assert_close(part.losses, whole.losses)
    for name in names:
        weight = bilm.get_parameter(name)
        found = dense(part.gradients[name], weight)
        torch.testing.assert_close(found, dense(whole.gradients[name], weight))


@pytest.mark.parametrize("kind", ["full", "sampled"])
@pytest.mark.parametrize("dtype, scale", [(torch.bfloat16, 1), (torch.float16, 2**14)])
@stacked_or_not
def test_shorter_dtypes_come_close(dtype, scale, kind, stacked):
    bilm = make_bilm(kind, dtype=torch.float32, scale=1.0)
    window = make_window(bilm, dtype=torch.float32)
    state = make_state(bilm)
    dropout = Dropout(0.0, 0, bilm.device)
    steps = []
    for settings in ({}, {"dtype": dtype, "loss_scale": scale, "stacked": stacked}):
        torch.manual_seed(0)  # for the words of the sampled softmax
        steps.append(train_step(bilm, window, state, dropout, **settings))
    exact, short = steps
    torch.testing.assert_close(short.losses, exact.losses, rtol=0.01, atol=0)
    assert short.gradients.keys() == exact.gradients.keys()
    assert short.state.c.dtype == torch.float32
    for name in exact.gradients:
        weight = bilm.get_parameter(name)
        gradient, found = (dense(step.gradients[name], weight) for step in steps)
        assert found.dtype == torch.float32
        assert (found - gradient).norm() < 0.05 * gradient.norm() + 1e-7, name


def test_two_windows_equal_one_of_twice_the_length():
    bilm = make_bilm()
    dropout = Dropout(0.0, 0, bilm.device)
    start = make_state(bilm)
    whole = train_step(bilm, make_window(bilm, number=0, n_steps=20), start, dropout)
    losses, state = torch.zeros(2, dtype=torch.float64), start
    for number in range(2):
        window = make_window(bilm, number=number, n_steps=10)
        step = train_step(bilm, window, state, dropout)
        losses, state = losses + step.losses, step.state
    torch.testing.assert_close(losses, whole.losses)
    torch.testing.assert_close(state, whole.state)


# Dropout


def test_dropout_drops_its_share_and_keeps_the_mean():
    x = torch.ones(300, 200)
    y = Dropout(0.3, 5, x.device)(x, 0)
    assert y.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert y.mean().item() == pytest.approx(1, abs=0.01)


def test_each_direction_has_its_own_random_numbers():
    x = torch.ones(20, 20)
    first, second = Dropout(0.5, 5, x.device), Dropout(0.5, 5, x.device)
    forward, backward = first(x, 0), first(x, 1)
    again = second(x, 1), second(x, 0)  # in the other order
    assert torch.equal(forward, again[1]) and torch.equal(backward, again[0])
    assert not torch.equal(forward, backward)
    assert not torch.equal(first(x, 0), forward)
    assert not torch.equal(Dropout(0.5, 6, x.device)(x, 0), forward)


@pytest.mark.parametrize("kind", KINDS)
def test_result_does_not_depend_on_the_thread_count(kind, two_threads):
    bilm = make_bilm(kind)
    runs = []
    for n_threads in (2, 2, 2, 1):
        torch.set_num_threads(n_threads)
        torch.manual_seed(0)
        state = State.zeros(bilm.config.lstm, N_ROWS, bilm.weight)
        dropout = Dropout(0.5, 0, bilm.device)
        step = train_step(bilm, make_window(bilm), state, dropout)
        found = {"losses": step.losses, "h": step.state.h, "c": step.state.c}
        for name, gradient in step.gradients.items():
            found[name] = dense(gradient, bilm.get_parameter(name))
        runs.append(found)
    for name, tensor in runs[0].items():
        for other in runs[1:-1]:
            assert torch.equal(other[name], tensor), name
        torch.testing.assert_close(runs[-1][name], tensor)


@pytest.mark.slow
def test_the_same_step_gives_the_same_bits(two_threads):
    """Check a window in which many tokens add to the gradient of one word's vector."""
    bilm = make_bilm(dtype=torch.float32, projection_dim=512)
    window = make_window(bilm, n_steps=90, number=0, dtype=torch.float32)
    state = make_state(bilm)
    first, *others = (
        train_step(bilm, window, state, Dropout(0.1, 3, bilm.device)) for _ in range(10)
    )
    for step in others:
        assert all(
            torch.equal(step.gradients[n], g) for n, g in first.gradients.items()
        )
