"""Compute the losses of a window on arrays."""

import numpy as np

from ..bilm import NumpyBiLM
from ..bilm.state import State
from .windows import WindowEncoder, WordNumbers


def compute_losses(
    bilm: NumpyBiLM,
    window_encoder: WindowEncoder,
    numbers: WordNumbers,
    mask: np.ndarray,
    state: State,
) -> tuple[list[float], State]:
    """Compute the losses of a window or a batch of sentences.

    mask (np.ndarray): False for padding, (n_steps, n_rows). The longest row comes
        first.
    state (State): The LSTM states at the beginning, which are overwritten.
    RETURNS (tuple[list[float], State]): The summed loss of each direction, and the LSTM
        states at the end.
    """
    assert bilm.softmax is not None
    targets = window_encoder.find_targets(numbers)
    active = mask.sum(1).tolist()
    losses = []
    for d in (0, 1):
        keys = window_encoder.find_keys(numbers.inputs[d][mask], d)
        top = bilm.run_direction(d, keys, active, state)
        logs = bilm.softmax.log_probs(top, targets[d][mask])
        losses.append(-float(logs.sum(dtype=np.float64)))
    return losses, state
