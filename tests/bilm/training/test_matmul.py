"""oneDNN's products in training, usually for large ones, against torch's own."""

import pytest
import torch
from helpers.windows import dense, make_bilm, make_state, make_window

from spacy_elmo.bilm.engines.kernels import has_packed_kernels
from spacy_elmo.bilm.training import matmul as products
from spacy_elmo.bilm.training.matmul import linear, pays, product, step_kernel
from spacy_elmo.bilm.training.step import Dropout, train_step

pytestmark = pytest.mark.skipif(
    not has_packed_kernels(), reason="this build of torch has no such operators"
)


@pytest.fixture
def for_all(monkeypatch):
    """Small products too."""
    monkeypatch.setattr(products, "LARGE", 0)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (64, 33, 16), (2, 100, 1)])
def test_product(for_all, shape, biased, turned):
    torch.manual_seed(0)
    n, k, m = shape
    x, weight, bias = torch.randn(n, k), torch.randn(k, m), torch.randn(m)
    if turned:  # views, as of a weight that is read the other way round
        x, weight = x.t().contiguous().t(), weight.t().contiguous().t()
    assert pays(x, weight)
    expected = (x.double() @ weight.double() + (bias if biased else 0)).float()
    found = product(x, weight, bias if biased else None)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    found = step_kernel(weight, n, limit=0.5)(x)
    clipped = (x.double() @ weight.double()).clamp(-0.5, 0.5).float()
    torch.testing.assert_close(found, clipped, rtol=1e-5, atol=1e-5)


def test_a_part_of_a_weight(for_all):
    weight = torch.randn(9, 8)
    x = torch.randn(5, 12)[:, 2:6]
    torch.testing.assert_close(product(x, weight[4:8]), x @ weight[4:8])


@pytest.mark.parametrize("needs_x", [True, False])
def test_gradients_of_a_linear_map(for_all, needs_x):
    torch.manual_seed(0)
    x = torch.randn(6, 5, requires_grad=needs_x)
    weight, bias = (torch.randn(*s, requires_grad=True) for s in ((5, 4), (4,)))
    wanted = [t for t in (x, weight, bias) if t.requires_grad]
    results = []
    for compute in (linear, lambda x, weight, bias: torch.addmm(bias, x, weight)):
        y = compute(x, weight, bias)
        results.append([y, *torch.autograd.grad(y.square().sum(), wanted)])
    for found, expected in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["full", "sampled"])
@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("lstm", [{}, {"dim": 5}, {"cell_clip": None}])
def test_a_step_of_training(monkeypatch, kind, forget, lstm):
    """The state, the losses and all gradients are the same either way."""
    bilm = make_bilm(kind, dtype=torch.float32, **lstm)
    window = make_window(bilm, forget=forget, dtype=torch.float32)
    state = make_state(bilm)
    steps = []
    for large in (products.LARGE, 0):
        monkeypatch.setattr(products, "LARGE", large)
        torch.manual_seed(0)  # for the words that are drawn
        steps.append(train_step(bilm, window, state, Dropout(0.1, 3, bilm.device)))
    plain, fast = steps
    close = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(fast.losses, plain.losses, **close)
    torch.testing.assert_close(tuple(fast.state), tuple(plain.state), **close)
    assert fast.gradients.keys() == plain.gradients.keys()
    for name in plain.gradients:
        weight = bilm.get_parameter(name)
        found, expected = (dense(step.gradients[name], weight) for step in steps[::-1])
        torch.testing.assert_close(found, expected, **close)


def test_what_it_cannot_do(for_all):
    x, weight = torch.randn(2, 3), torch.randn(3, 4)
    assert pays(x, weight)
    assert not pays(x.double(), weight.double())
    assert not pays(x.bfloat16(), weight.bfloat16())
    double = product(x.double(), weight.double())
    torch.testing.assert_close(double, x.double() @ weight.double())
