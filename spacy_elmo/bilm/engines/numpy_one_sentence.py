"""LSTMs on arrays over one sentence at a time. Here, calling numpy takes a good part of
the time of a step. So each call but the matrix products covers both directions."""

import numpy as np

from ..config import LSTMConfig
from .numpy_lstm import TOKENS_AT_A_TIME, CellStep, LayerWeights


class NumpyBothDirectionsLSTM:
    """One layer of both directions."""

    def __init__(
        self, config: LSTMConfig, forward: LayerWeights, backward: LayerWeights
    ) -> None:
        self.weights = (forward, backward)
        self.dim = config.dim
        self.step = CellStep(config.dim, config.cell_clip)
        clip = config.proj_clip if config.projection else None
        self.proj_clip = None if clip is None else np.float32(clip)

    def run(self, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Run the layer over one sentence.

        x (np.ndarray): Inputs of each direction, in the order in which it reads them,
            (2, n_tokens, n_in).
        h, c (np.ndarray): The states (2, proj) and (2, dim), updated in place.
        RETURNS (np.ndarray): Outputs, (2, n_tokens, proj).
        """
        out = np.empty((x.shape[1], 2, h.shape[1]), np.float32)
        last, cell = h, c * np.float32(0.5)
        for at in range(0, len(out), TOKENS_AT_A_TIME):
            part = slice(at, at + TOKENS_AT_A_TIME)
            last = self._steps(x[:, part], out[part], last, cell)
        h[:] = last
        np.multiply(cell, np.float32(2), out=c)
        return out.transpose(1, 0, 2)

    def _steps(
        self, x: np.ndarray, out: np.ndarray, last: np.ndarray, cell: np.ndarray
    ) -> np.ndarray:
        """Run n steps.

        x (np.ndarray): Inputs, (2, n, n_in).
        out (np.ndarray): Where to write the outputs, (n, 2, proj).
        last (np.ndarray): The h to start from, (2, proj).
        cell (np.ndarray): The halved cells, (2, dim), updated in place.
        RETURNS (np.ndarray): The last h, (2, proj).
        """
        forward, backward = self.weights
        gates = np.empty((2, 4 * self.dim), np.float32)
        hidden = np.empty((2, self.dim), np.float32)
        inputs = zip(forward.from_inputs(x[0]), backward.from_inputs(x[1]))
        limit = self.proj_clip
        for (more_0, more_1), new in zip(inputs, out):
            np.dot(last[0], forward.recurrent, out=gates[0])
            np.dot(last[1], backward.recurrent, out=gates[1])
            gates[0] += more_0
            gates[1] += more_1
            self.step(gates, cell, hidden)
            if forward.projection is None or backward.projection is None:
                np.multiply(hidden, np.float32(2), out=new)
            else:
                np.dot(hidden[0], forward.projection, out=new[0])
                np.dot(hidden[1], backward.projection, out=new[1])
                if limit is not None:
                    np.minimum(new, limit, out=new)
                    np.maximum(new, -limit, out=new)
            last = new
        return last
