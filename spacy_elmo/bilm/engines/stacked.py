"""Inference on GPUs. Both directions share every operation, because on a GPU most of
the time of a step goes into launching kernels."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..devices import to_device
from ..stack import run_stack
from ..state import LayerState, State
from ..training.stacked_lstm import Weights, run_stacked_layer, stack_weights
from .packing import Packing
from .padded import PaddedEngine

if TYPE_CHECKING:
    from ..model import BiLM


class StackedEngine(PaddedEngine):
    """Runs padded batches with the LSTMs of training. It needs a copy of the weights of
    the LSTMs."""

    def __init__(self, bilm: "BiLM") -> None:
        super().__init__(bilm)
        self.weights = [stack_weights(pair) for pair in zip(*bilm.directions)]

    def run(
        self, table: Tensor, index: np.ndarray, packing: Packing, state: State
    ) -> Tensor:
        """Run a batch of sentences; see Engine.run."""
        # All indices are made on the host; see PaddedEngine.
        lengths, steps = packing.lengths[:, None], np.arange(packing.lengths[0])
        active = steps < lengths  # (n_rows, n_steps)
        # Reverse each row within its own length: padding stays at the end.
        mirror = np.where(active, lengths - 1 - steps, steps)
        padded = np.zeros(active.shape, dtype=np.int64)
        padded[active] = index
        words = np.stack([padded.T, np.take_along_axis(padded, mirror, 1).T])
        x = F.embedding(to_device(words, table.device), table)
        columns = [x, *self._run_layers(x, packing.lengths, state)]
        # Row numbers in all layers of all places, (n_tokens, n_layers + 1, 2).
        row, step = active.nonzero()
        n_steps, n_rows = len(steps), len(lengths)
        places = np.stack([step, n_steps + mirror[row, step]], 1)
        places = places * n_rows + row[:, None]  # (n_tokens, 2)
        places = places[:, None] * len(columns) + np.arange(len(columns))[:, None]
        flat = torch.stack(columns, 3).view(-1, x.shape[-1])
        return F.embedding(to_device(places, x.device), flat).flatten(2)

    def _run_layers(self, x: Tensor, lengths: np.ndarray, state: State) -> list[Tensor]:
        """Run all layers, and put their last states into state.

        x (Tensor): The vectors that each direction reads, (2, n_steps, n_rows, proj).
        lengths (np.ndarray): The number of tokens of each row, (n_rows,).
        RETURNS (list[Tensor]): The outputs of each layer, of the same shape as x.
        """
        last = to_device(np.stack([lengths - 1, np.arange(len(lengths))]), x.device)

        def run_both(
            weights: Weights, x: Tensor, start: LayerState
        ) -> tuple[Tensor, LayerState]:
            out, cells = run_stacked_layer(weights, x, start)
            ends: Any = [part[:, last[0], last[1]] for part in (out, cells)]
            for old, new in zip(start, ends):
                old.copy_(new)
            return out, start

        outputs = run_stack(
            self.weights,
            x,
            zip(state.h.unbind(1), state.c.unbind(1)),
            run_both,
            skip_connections=self.bilm.config.lstm.skip_connections,
        )
        return [y for y, _ in outputs]
