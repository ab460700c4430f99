"""Compute the losses of a window with torch."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..bilm import BiLM
from ..bilm.devices import to_device
from ..bilm.engines.threads import side_by_side
from ..bilm.state import LayerState, State
from ..bilm.training.directions import run_both_directions, run_direction
from .windows import WindowEncoder, WordNumbers


@torch.no_grad()
def compute_losses(
    bilm: BiLM,
    window_encoder: WindowEncoder,
    numbers: WordNumbers,
    mask: np.ndarray,
    state: State,
) -> tuple[list[float], State]:
    """Compute the losses of a window or a batch of sentences.

    mask (np.ndarray): False for padding, (n_steps, n_rows).
    state (State): The LSTM states at the beginning.
    RETURNS (tuple[list[float], State]): The summed loss of each direction, and the LSTM
        states at the end.
    """
    head = bilm.softmax
    assert head is not None
    window = window_encoder.encode(numbers)
    vectors = bilm.encoder(*window.ids)
    on_host = torch.from_numpy(np.flatnonzero(mask))
    chosen = to_device(on_host, bilm.device)

    def loss(d: int, top: Tensor) -> Tensor:
        hidden = top.flatten(0, 1)[chosen]
        targets = window.targets[d].flatten()[on_host]
        return -head.log_probs(hidden, targets).double().sum()

    @torch.no_grad()
    def direction(d: int) -> tuple[float, list[LayerState]]:
        top, last = run_direction(bilm, d, vectors[window.tokens[d]], state)
        return loss(d, top).item(), last

    if bilm.device.type != "cpu":
        x = F.embedding(window.tokens, vectors)
        tops, state = run_both_directions(bilm, x, state)
        # Both losses are copied at once, so that the host waits once.
        both = torch.stack([loss(d, top) for d, top in enumerate(tops)])
        return both.cpu().tolist(), state
    tasks = [lambda: direction(0), lambda: direction(1)]
    losses, states = zip(*side_by_side(tasks, parallel=True))
    return list(losses), State.stack(states)
