"""Compare oneDNN's matrix products, which training uses for large matrices, with those
of torch."""

import pytest
import torch
from helpers.windows import dense, make_bilm, make_state, make_window

from spacy_elmo.bilm.engines.kernels import has_packed_kernels
from spacy_elmo.bilm.training import matmul as matmul_module
from spacy_elmo.bilm.training.matmul import linear, matmul, step_kernel, use_onednn
from spacy_elmo.bilm.training.step import Dropout, train_step

pytestmark = pytest.mark.skipif(
    not has_packed_kernels(), reason="this build of torch has no such operators"
)


@pytest.fixture
def for_all_sizes(monkeypatch):
    """Use oneDNN for small products too."""
    monkeypatch.setattr(matmul_module, "LARGE", 0)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (64, 33, 16), (2, 100, 1)])
def test_matmul_and_step_kernel(for_all_sizes, shape, biased, transposed):
    torch.manual_seed(0)
    n, k, m = shape
    x, weight, bias = torch.randn(n, k), torch.randn(k, m), torch.randn(m)
    if transposed:  # views with the strides of a transposed matrix
        x, weight = x.t().contiguous().t(), weight.t().contiguous().t()
    assert use_onednn(x, weight)
    expected = (x.double() @ weight.double() + (bias if biased else 0)).float()
    found = matmul(x, weight, bias if biased else None)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    found = step_kernel(weight, n, limit=0.5)(x)
    clipped = (x.double() @ weight.double()).clamp(-0.5, 0.5).float()
    torch.testing.assert_close(found, clipped, rtol=1e-5, atol=1e-5)


def test_matmul_with_a_slice_of_a_weight(for_all_sizes):
    weight = torch.randn(9, 8)
    x = torch.randn(5, 12)[:, 2:6]
    torch.testing.assert_close(matmul(x, weight[4:8]), x @ weight[4:8])


@pytest.mark.parametrize("needs_x", [True, False])
def test_gradients_of_a_linear_map(for_all_sizes, needs_x):
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
def test_training_step_is_the_same_with_onednn(monkeypatch, kind, forget, lstm):
    bilm = make_bilm(kind, dtype=torch.float32, **lstm)
    window = make_window(bilm, forget=forget, dtype=torch.float32)
    state = make_state(bilm)
    steps = []
    for large in (matmul_module.LARGE, 0):
        monkeypatch.setattr(matmul_module, "LARGE", large)
        torch.manual_seed(0)  # for the words of the sampled softmax
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


def test_other_dtypes_use_the_product_of_torch(for_all_sizes):
    x, weight = torch.randn(2, 3), torch.randn(3, 4)
    assert use_onednn(x, weight)
    assert not use_onednn(x.double(), weight.double())
    assert not use_onednn(x.bfloat16(), weight.bfloat16())
    double = matmul(x.double(), weight.double())
    torch.testing.assert_close(double, x.double() @ weight.double())
