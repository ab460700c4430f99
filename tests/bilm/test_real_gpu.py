"""Compare a real GPU with the CPU. These tests run only with `pytest --gpu`."""

import numpy as np
import pytest
import torch
from helpers.windows import N_ROWS, dense, make_bilm, make_numbers, make_window

from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.training.step import Dropout, train_step
from spacy_elmo.pretrain.torch_losses import compute_losses

SENTENCES = [text.split() for text in ["a b", "", "c", "d e f g h", "x y z"]]


@pytest.fixture
def cuda(request):
    if not request.config.getoption("--gpu"):
        pytest.skip("needs a real GPU: pytest --gpu")
    return torch.device("cuda:0")


@pytest.fixture
def never_waits(cuda):
    """Fail if the host waits for the GPU."""
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def make_pair(device, kind="full"):
    """Make the same biLM on the CPU and on the GPU."""
    bilms = [make_bilm(kind, dtype=torch.float32) for _ in range(2)]
    return bilms[0], bilms[1].to(device)


def test_layers_are_those_of_the_cpu(cuda):
    bilm, on_gpu = make_pair(cuda)
    for stateful in (False, True, True):
        expected = bilm.embed(SENTENCES, stateful)
        found = on_gpu.embed(SENTENCES, stateful)
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


def test_inference_never_waits(cuda, never_waits):
    _, on_gpu = make_pair(cuda)
    on_gpu.run(SENTENCES)


def take_step(bilm, **options):
    torch.manual_seed(0)  # for the words of the sampled softmax
    state = State.zeros(bilm.config.lstm, N_ROWS, bilm.weight)
    window = make_window(bilm, dtype=torch.float32)
    return train_step(bilm, window, state, Dropout(0.0, 0, bilm.device), **options)


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
@pytest.mark.parametrize("compiled", [False, True])
def test_training_step_is_that_of_the_cpu(cuda, kind, compiled):
    bilm, on_gpu = make_pair(cuda, kind)
    expected, found = take_step(bilm), take_step(on_gpu, compiled=compiled)
    torch.testing.assert_close(found.losses.cpu(), expected.losses)
    assert found.gradients.keys() == expected.gradients.keys()
    for name, gradient in expected.gradients.items():
        x = dense(found.gradients[name], on_gpu.get_parameter(name)).cpu()
        y = dense(gradient, bilm.get_parameter(name))
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-5, msg=name)


def test_training_step_never_waits(cuda, never_waits):
    _, on_gpu = make_pair(cuda, "sampled")
    take_step(on_gpu)


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_evaluation_is_that_of_the_cpu(cuda, kind):
    losses = []
    for bilm in make_pair(cuda, kind):
        window_encoder, numbers = make_numbers(bilm)
        mask = np.ones(numbers.targets.shape[1:], bool)
        state = State.zeros(bilm.config.lstm, N_ROWS, bilm.weight)
        found, _ = compute_losses(bilm, window_encoder, numbers, mask, state)
        losses.append(found)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
