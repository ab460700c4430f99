"""Compare optimizers and clipping with those of torch, and check schedules."""

import math

import pytest
import torch
from torch.nn.utils import clip_grad_norm_

from spacy_elmo.bilm.training.softmax_backward import (
    RowGradient,
    add_gradients,
    merge_rows,
)
from spacy_elmo.pretrain.loss_scale import LossScaler
from spacy_elmo.pretrain.optimizers import Adagrad, AdamW, clip_by_norm
from spacy_elmo.pretrain.pretrain_config import ScheduleConfig
from spacy_elmo.pretrain.schedule import schedule

SHAPES = {"matrix": (7, 3), "vector": (5,)}


def make_weights():
    torch.manual_seed(0)
    return {name: torch.randn(shape) for name, shape in SHAPES.items()}


def gradients_of(step):
    generator = torch.Generator().manual_seed(step)
    return {n: torch.randn(s, generator=generator) for n, s in SHAPES.items()}


def compare(ours, make_theirs):
    """Check that two optimizers change weights in the same way.

    ours (Callable): Makes our optimizer from weights by name.
    make_theirs (Callable): Makes torch's optimizer from parameters by name.
    """
    weights = make_weights()
    theirs = {name: w.clone().requires_grad_() for name, w in weights.items()}
    optimizer, other = ours(weights), make_theirs(theirs)
    for step in range(20):
        rate = 0.1 / (step + 1)
        for group in other.param_groups:
            group["lr"] = rate
        for name, gradient in gradients_of(step).items():
            optimizer.step(name, gradient.clone(), rate)
            theirs[name].grad = gradient
        other.step()
    for name, weight in theirs.items():
        torch.testing.assert_close(weights[name], weight.detach())


@pytest.mark.parametrize("initial", [0.0, 1.0])
def test_adagrad_is_that_of_torch(initial):
    compare(
        lambda weights: Adagrad(weights, initial_accumulator=initial),
        lambda weights: torch.optim.Adagrad(
            weights.values(), initial_accumulator_value=initial, eps=0.0
        ),
    )


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_is_that_of_torch(decay):
    settings = {"beta1": 0.8, "beta2": 0.97, "epsilon": 1e-3}
    compare(
        lambda weights: AdamW(weights, weight_decay=decay, **settings),
        lambda weights: torch.optim.AdamW(
            [  # only matrices decay
                {"params": [weights["matrix"]], "weight_decay": decay},
                {"params": [weights["vector"]], "weight_decay": 0.0},
            ],
            betas=(0.8, 0.97),
            eps=1e-3,
        ),
    )


def rows_of(step):
    rows = torch.randperm(7, generator=torch.Generator().manual_seed(step))[:3]
    return RowGradient(rows, gradients_of(step)["matrix"][rows])


def test_rows_for_adagrad_are_a_gradient_with_zeros():
    whole, part = make_weights(), make_weights()
    first, second = Adagrad(whole), Adagrad(part)
    for step in range(10):
        rows = rows_of(step)
        full = torch.zeros(7, 3).index_add_(0, *rows)
        first.step("matrix", full, 0.3)
        second.step("matrix", rows, 0.3)
    torch.testing.assert_close(part["matrix"], whole["matrix"])
    torch.testing.assert_close(first.sums, second.sums)


def test_rows_for_adamw_move_alone():
    part, whole = make_weights(), make_weights()
    first, second = AdamW(part, weight_decay=0.1), AdamW(whole, weight_decay=0.1)
    before = part["matrix"].clone()
    rows = rows_of(0).rows
    for step in range(4):
        values = gradients_of(step)["matrix"][rows]
        first.step("matrix", RowGradient(rows, values), 0.1)
        full = torch.zeros(7, 3).index_add_(0, rows, values)
        second.step("matrix", full, 0.1)
    moved = (part["matrix"] != before).any(1)
    assert sorted(rows.tolist()) == moved.nonzero().flatten().tolist()
    torch.testing.assert_close(part["matrix"][rows], whole["matrix"][rows])


@pytest.mark.parametrize("kind", [Adagrad, AdamW])
def test_state_is_all_there_is(kind):
    """An optimizer continues exactly from the state that a checkpoint stores."""
    whole, part = make_weights(), make_weights()
    first = kind(whole)
    for step in range(6):
        for name, gradient in gradients_of(step).items():
            first.step(name, gradient, 0.1)
        if step == 2:
            kept = {key: tensor.clone() for key, tensor in first.state().items()}
            part = {name: weight.clone() for name, weight in whole.items()}
    second = kind(part)
    for key, tensor in second.state().items():
        tensor.copy_(kept[key])
    for step in range(3, 6):
        for name, gradient in gradients_of(step).items():
            second.step(name, gradient, 0.1)
    for name, weight in whole.items():
        assert torch.equal(part[name], weight)


def test_rows_are_added_up():
    parts = [
        RowGradient(torch.tensor([4, 1, 4]), torch.tensor([1.0, 2.0, 4.0])),
        RowGradient(torch.tensor([0, 1]), torch.tensor([8.0, 16.0])),
    ]
    for found in (merge_rows(parts), add_gradients(parts)):
        assert found.rows.tolist() == [0, 1, 4]
        assert found.values.tolist() == [8.0, 18.0, 5.0]


@pytest.mark.parametrize("limit", [0.0, 0.5, 4.0, 100.0])
def test_clipping_is_that_of_torch(limit):
    gradients = {**gradients_of(0), "rows": rows_of(1)}
    values = [gradients["matrix"], gradients["vector"], gradients["rows"].values]
    weights = [torch.nn.Parameter(torch.zeros_like(value)) for value in values]
    for weight, value in zip(weights, values):
        weight.grad = value.clone()
    expected = clip_grad_norm_(weights, limit or math.inf)
    assert 4 < expected < 8
    assert clip_by_norm(gradients, limit) == pytest.approx(expected.item())
    for weight, value in zip(weights, values):
        torch.testing.assert_close(value, weight.grad)


# The learning rate


def shape(decay, n_steps=100, **settings):
    settings = ScheduleConfig(decay=decay, **settings)
    return [schedule(settings, step, step / n_steps) for step in range(n_steps + 1)]


def test_warm_up_rises_to_the_whole_rate():
    for decay in ("constant", "linear", "cosine", "inverse_sqrt"):
        found = shape(decay, warmup_steps=10)
        assert found[:10] == pytest.approx([(n + 1) / 10 for n in range(10)])
        assert max(found) == found[9] == 1.0
        assert found[9:] == sorted(found[9:], reverse=True)


def test_shapes_of_the_decay():
    assert set(shape("constant")) == {1.0}
    assert shape("linear") == pytest.approx([1 - n / 100 for n in range(101)])
    cosine = shape("cosine", final_share=0.2)
    assert (cosine[0], cosine[50], cosine[100]) == pytest.approx((1.0, 0.6, 0.2))
    assert shape("linear", final_share=0.05)[100] == pytest.approx(0.05)
    inverse = shape("inverse_sqrt", warmup_steps=4)
    assert (inverse[4], inverse[16], inverse[64]) == pytest.approx((1, 0.5, 0.25))


# The scale of float16


def test_scale_halves_on_overflow_and_grows_again(monkeypatch):
    monkeypatch.setattr(LossScaler, "PATIENCE", 3)
    scaler = LossScaler("float16")
    start = scaler.scale
    assert not scaler.accepts(math.inf) and not scaler.accepts(math.nan)
    assert scaler.scale == start / 4
    assert all(scaler.accepts(1.0) for _ in range(3))
    assert scaler.scale == start / 2


def test_without_a_scale_overflow_is_an_error():
    scaler = LossScaler("float32")
    assert scaler.accepts(1.0) and scaler.scale == 1
    with pytest.raises(ValueError, match=r"not finite; lower training\.opt") as caught:
        scaler.accepts(math.nan)
    assert "clip_norm" not in str(caught.value)  # clipping cannot make it finite


def test_a_scale_that_does_not_help_is_an_error():
    scaler = LossScaler("float16")
    with pytest.raises(ValueError, match="the gradients are not finite"):
        for _ in range(100):
            scaler.accepts(math.nan)
    assert scaler.scale > 0


def test_the_scale_of_another_precision_is_not_resumed():
    start = LossScaler("float16").scale
    for before, after, expected in (
        ("float16", "float16", start / 2),
        ("float32", "float16", start),
        ("float16", "float32", 1.0),
    ):
        old, new = LossScaler(before), LossScaler(after)
        if old.active:
            old.accepts(math.inf)
        new.resume(old.scale, old.n_good)
        assert new.scale == expected
