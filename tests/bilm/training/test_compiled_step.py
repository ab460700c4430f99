"""Compare a compiled training step with one that is not."""

from functools import partial

import pytest
import torch
from helpers.windows import make_bilm, make_state, make_window

from spacy_elmo.bilm.training.stacked_lstm import compile_steps
from spacy_elmo.bilm.training.step import Dropout, train_step
from spacy_elmo.pretrain.pretraining import check_compiler


def take_step(bilm, window, **options):
    state = make_state(bilm)
    return train_step(bilm, window, state, Dropout(0.3, 3, bilm.device), **options)


def check(bilm, window):
    torch.manual_seed(0)
    expected = take_step(bilm, window, stacked=True)
    torch.manual_seed(0)
    found = take_step(bilm, window, compiled=True)
    torch.testing.assert_close(found, expected)


@pytest.fixture
def graphs(monkeypatch):
    """Let torch.compile only record what it would compile. Return the list of these
    graphs."""
    found = []

    def record(graph, inputs):
        found.append(graph)
        return graph.forward

    compile_steps.cache_clear()
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=record))
    yield found
    compile_steps.cache_clear()


@pytest.mark.slow
def test_all_steps_of_a_layer_are_one_graph(graphs):
    """Forward and backward have a graph each, the same for all layers and windows."""
    bilm = make_bilm(dtype=torch.float32)
    for number in (0, 1):
        window = make_window(bilm, number=number, n_steps=3, dtype=torch.float32)
        check(bilm, window)
    assert len(graphs) == 2


@pytest.mark.slow
def test_compiled_steps_give_the_same_gradients():
    try:
        check_compiler("cpu")
    except ValueError as error:
        pytest.skip(str(error))
    bilm = make_bilm(dtype=torch.float32, n_layers=1)
    check(bilm, make_window(bilm, n_steps=2, dtype=torch.float32))
