"""Inference on arrays, without torch."""

from functools import partial

import numpy as np

from ..config import BiLMConfig
from ..stack import run_stack
from ..state import State
from .blas_threads import one_blas_thread, side_by_side
from .numpy_encoders import NumpyEncoder
from .numpy_lstm import GateSource, LayerWeights, NumpyLSTM
from .numpy_one_sentence import NumpyBothDirectionsLSTM
from .packing import Packing

# The number of multiplications per step from which on it is faster to run the two
# directions in two threads.
PARALLEL_FROM = 2**22
# The number of multiplications from which on words are encoded in two threads: more
# than the words of a sentence need at the bundled size.
ENCODE_PARALLEL_FROM = 2**26
# The gates of the first layer are computed once for each distinct word if there are at
# most this many distinct words per token, and at most this many words times cells (128
# MB of gates).
MAX_DISTINCT = 0.5
MAX_BY_WORD = 2**23


class NumpyEngine:
    """Computes word vectors and layers from named arrays; see Engine.

    config (BiLMConfig): Sizes.
    arrays (dict[str, np.ndarray]): The weights, by the names in the torch model.
    """

    def __init__(self, config: BiLMConfig, arrays: dict[str, np.ndarray]) -> None:
        self.skip_connections = config.lstm.skip_connections
        self.encoder = NumpyEncoder(config, arrays)
        self.weights = [
            [
                LayerWeights.prepare(config.lstm, arrays, f"{direction}_layers.{j}.")
                for j in range(config.lstm.n_layers)
            ]
            for direction in ("forward", "backward")
        ]
        self.directions = [
            [NumpyLSTM(config.lstm, weights) for weights in layers]
            for layers in self.weights
        ]
        self.one_sentence_layers = [
            NumpyBothDirectionsLSTM(config.lstm, *pair) for pair in zip(*self.weights)
        ]
        self.size = 2 * self.weights[0][0].recurrent.size

    def encode(self, ids: np.ndarray) -> np.ndarray:
        """Map ids to word vectors; see Engine.encode."""
        large = ids.size * self.encoder.n_weights >= ENCODE_PARALLEL_FROM
        with one_blas_thread() as n_threads:
            if not large or n_threads < 2 or len(ids) < 2:
                return self._encode(ids)
            halves = [partial(self._encode, half) for half in np.array_split(ids, 2)]
            return np.concatenate(side_by_side(halves, parallel=True))

    def _encode(self, ids: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # numpy keeps this setting per thread
            return self.encoder(ids)

    def run(
        self, table: np.ndarray, index: np.ndarray, packing: Packing, state: State
    ) -> np.ndarray:
        """Run a batch of sentences; see Engine.run."""
        with one_blas_thread() as n_threads:
            size = packing.active[0] * self.size
            parallel = n_threads > 1 and size >= PARALLEL_FROM
            if packing.active[0] == 1 and not parallel:
                return self._run_one_sentence(table[index], state)
            proj = table.shape[1]
            shape = (len(index), len(self.directions[0]) + 1, 2 * proj)
            out = np.empty(shape, np.float32)

            def run_direction(d: int) -> None:
                half = out[:, :, d * proj : (d + 1) * proj]
                half[:, 0] = table[index]
                order = packing.order[d]
                layers = self.run_direction(
                    d, table, index[order], packing.active, state
                )
                for j, y in enumerate(layers):
                    half[order, j + 1] = y

            side_by_side([partial(run_direction, d) for d in (0, 1)], parallel)
            return out

    def run_direction(
        self,
        direction: int,
        table: np.ndarray,
        rows: np.ndarray,
        active: list[int],
        state: State,
    ) -> list[np.ndarray]:
        """Run all layers of one direction over a packed batch.

        table (np.ndarray): Word vectors, (n_words, proj).
        rows (np.ndarray): The row of each packed token in the table, (n_tokens,).
        active (list[int]): The number of active rows at each step.
        state (State): One row per sentence; updated in place.
        RETURNS (list[np.ndarray]): The packed outputs of each layer, (n_tokens, proj).
        """
        layers = self.directions[direction]
        by_word = _gates_by_word(layers[0], table, rows)

        def run_layer(
            layer: NumpyLSTM, x: np.ndarray, start: tuple[np.ndarray, np.ndarray]
        ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
            inputs = layer.gates_of(x)
            if layer is layers[0] and by_word is not None:
                inputs = by_word
            return layer.run(inputs, active, *start), start

        with np.errstate(over="ignore"):
            outputs = run_stack(
                layers,
                table[rows],
                state.layers(direction),
                run_layer,
                skip_connections=self.skip_connections,
            )
            return [y for y, _ in outputs]

    def _run_one_sentence(self, x: np.ndarray, state: State) -> np.ndarray:
        """Run one sentence through both directions at once.

        x (np.ndarray): Word vectors, (n_tokens, proj).
        state (State): One row; updated in place.
        RETURNS (np.ndarray): All layers, (n_tokens, n_layers + 1, 2 * proj).
        """
        both = np.stack([x, x[::-1]])
        states = zip(
            state.h[:, :, 0].transpose(1, 0, 2), state.c[:, :, 0].transpose(1, 0, 2)
        )
        with np.errstate(over="ignore"):
            outputs = run_stack(
                self.one_sentence_layers,
                both,
                states,
                lambda layer, x, start: (layer.run(x, *start), start),
                skip_connections=self.skip_connections,
            )
            layers = [both, *(y for y, _ in outputs)]
        n_tokens, proj = x.shape
        out = np.empty((n_tokens, len(layers), 2 * proj), np.float32)
        for j, (forward, backward) in enumerate(layers):
            out[:, j, :proj] = forward
            out[:, j, proj:] = backward[::-1]
        return out


def _gates_by_word(
    layer: NumpyLSTM, table: np.ndarray, rows: np.ndarray
) -> GateSource | None:
    """Compute the part of a layer's gates that depends on the inputs once for each
    distinct word, if words are repeated so often that this pays.

    table (np.ndarray): Word vectors, (n_words, n_in).
    rows (np.ndarray): The row of each packed token in the table, (n_tokens,).
    RETURNS (GateSource | None): The gates of tokens; None if it does not pay.
    """
    words, places = np.unique(rows, return_inverse=True)
    if len(words) > MAX_DISTINCT * len(rows) or len(words) * layer.dim > MAX_BY_WORD:
        return None
    gates = layer.weights.from_inputs(table[words])
    return lambda first, last: gates[places[first:last]]
