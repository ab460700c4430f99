"""Compare the engine of GPUs with the differentiable model, both on the CPU."""

import pytest
import torch
from helpers.windows import make_bilm

from spacy_elmo.bilm import model
from spacy_elmo.bilm.engines.padded import PaddedEngine
from spacy_elmo.bilm.engines.stacked import StackedEngine
from spacy_elmo.bilm.state import State

SENTENCES = [text.split() for text in ["a b", "", "c", "d e f g h", "x y z"]]


def compute(bilm, engine, monkeypatch):
    """Compute layers without a state, with one, and with a small batch; return all of
    them with the new states."""
    monkeypatch.setattr(model, "make_engine", lambda bilm, precision: engine(bilm))
    bilm.weights_changed()
    torch.manual_seed(0)
    state = State(*(torch.randn_like(part) for part in bilm.zero_state(2)))
    found = [bilm.run(SENTENCES)[0]]
    for max_batch_tokens in (1000, 4):
        layers, new = bilm.run(SENTENCES, state, max_batch_tokens=max_batch_tokens)
        found.append([*layers, *new])
    return found


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"n_layers": 3, "skip_connections": False},
        {"dim": 5, "projection": False},
        {"cell_clip": None, "proj_clip": None, "forget_bias": 0.0},
    ],
)
def test_both_directions_at_once_give_the_same_layers(monkeypatch, sizes):
    bilm = make_bilm(dtype=torch.float32, **sizes)
    expected = compute(bilm, PaddedEngine, monkeypatch)
    found = compute(bilm, StackedEngine, monkeypatch)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
