"""Inference by the differentiable model: on GPUs, in float64, and as a reference in
tests of the other engines."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..devices import to_device
from ..state import State
from .packing import Packing

if TYPE_CHECKING:
    from ..model import BiLM


class PaddedEngine:
    """Runs the layers of the model itself over a padded batch."""

    def __init__(self, bilm: "BiLM") -> None:
        self.bilm = bilm

    def encode(self, ids: np.ndarray) -> Tensor:
        return self.bilm.encoder(torch.from_numpy(ids))

    def run(
        self, table: Tensor, index: np.ndarray, packing: Packing, state: State
    ) -> Tensor:
        """Run a batch of sentences; see Engine.run."""
        # All indices are made on the host: to count the true values of a mask on a GPU,
        # we would have to wait for the GPU.
        active = np.arange(packing.lengths[0]) < packing.lengths[:, None]
        padded = np.zeros(active.shape, dtype=np.int64)
        padded[active] = index
        x = table[to_device(padded, table.device)]  # (n_rows, n_steps, proj)
        lengths = to_device(packing.lengths, table.device)
        output = self.bilm.contextualize(x, lengths, state)
        state.put(range(state.n_rows), output.state)
        rows, steps = to_device(np.stack(active.nonzero()), table.device)
        return output.layers.permute(1, 2, 0, 3)[rows, steps]
