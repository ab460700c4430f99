"""Token encoders on arrays: map the ids of words (see word_ids.py) to vectors."""

from collections.abc import Callable

import numpy as np

from ..config import BiLMConfig, BytesConfig, CharsConfig, WordsConfig
from .numpy_cnn import NumpyCNN, sigmoid
from .packing import Packing

Arrays = dict[str, np.ndarray]
Features = Callable[[np.ndarray], np.ndarray]


class NumpyEncoder:
    """Maps ids (n_words, width) to vectors (n_words, proj)."""

    def __init__(self, config: BiLMConfig, arrays: Arrays) -> None:
        self.features = _make_features(config, arrays)
        # About how many weights are multiplied with each character.
        self.n_weights = sum(
            array.size for name, array in arrays.items() if "cnn.weights." in name
        )
        self.weight = self.bias = None
        if config.encoder_projection:
            self.weight = arrays["encoder.projection.weight"]
            self.bias = arrays["encoder.projection.bias"]

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        x = self.features(ids)
        return x if self.weight is None else x @ self.weight + self.bias


def _make_features(config: BiLMConfig, arrays: Arrays) -> Features:
    """Make the function that maps ids to the inputs of the projection."""
    encoder = config.encoder
    if isinstance(encoder, WordsConfig):
        table = arrays["encoder.table"]
        return lambda ids: table[ids[:, 0]]
    if isinstance(encoder, BytesConfig):
        return _make_cnn(encoder, arrays, "encoder.cnn.")
    chars: Features
    if encoder.reader == "cnn":
        chars = _make_cnn(encoder, arrays, "encoder.chars.cnn.")
    else:
        chars = CharLSTM(arrays, "encoder.chars.")
    if not encoder.word_dim:
        return lambda ids: chars(ids[:, 1:])
    words = arrays["encoder.word_table"]
    return lambda ids: np.concatenate([words[ids[:, 0]], chars(ids[:, 1:])], 1)


def _make_cnn(config: BytesConfig | CharsConfig, arrays: Arrays, name: str) -> NumpyCNN:
    return NumpyCNN(
        config.filters,
        n_highway=config.n_highway,
        activation=config.activation,
        max_chars=config.max_chars,
        arrays=arrays,
        name=name,
    )


class CharLSTM:
    """Maps the ids of CharIds to features (n_keys, 2 * char_dim): the last states of an
    LSTM over the characters of two words. For the ids see CharIds._encode_for_lstm.

    arrays (dict[str, np.ndarray]): All weights of the model.
    name (str): The beginning of the names of this encoder's weights.
    """

    def __init__(self, arrays: Arrays, name: str) -> None:
        self.embedding = arrays[name + "embedding"]
        self.directions = []
        for end in ("l0", "l0_reverse"):
            x, h = (arrays[f"{name}lstm.weight_{k}_{end}"].T for k in ("ih", "hh"))
            bias = sum(arrays[f"{name}lstm.bias_{k}_{end}"] for k in ("ih", "hh"))
            self.directions.append((x, h, bias))

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        sides = ids[:, :2], np.split(ids[:, 2:], 2, axis=1)
        halves = []
        for side, chars in enumerate(sides[1]):
            last = self._last_states(chars)  # (2, n_keys, char_dim)
            halves.append(last[sides[0][:, side], np.arange(len(ids))])
        return np.concatenate(halves, 1)

    def _last_states(self, chars: np.ndarray) -> np.ndarray:
        """Run both directions over words.

        chars (np.ndarray): Character ids, (n_words, width), filled up with -1.
        RETURNS (np.ndarray): The last h of each direction, (2, n_words, char_dim).
        """
        known = chars >= 0
        packing = Packing(range(len(chars)), known.sum(1).tolist())
        flat = chars[packing.rows][known[packing.rows]]  # longest word first
        out = np.empty((2, len(chars), self.embedding.shape[1]), np.float32)
        for d, (x, h, bias) in enumerate(self.directions):
            inputs = self.embedding[flat[packing.order[d]]] @ x + bias
            out[d, packing.rows] = _run_plain_lstm(inputs, packing.active, h)
        return out


def _run_plain_lstm(
    inputs: np.ndarray, active: list[int], recurrent: np.ndarray
) -> np.ndarray:
    """Run an LSTM without projection, with the gates input, forget, candidate, output.

    inputs (np.ndarray): The part of the gates that depends on the inputs, packed,
        (n_tokens, 4 * dim).
    active (list[int]): The number of active rows at each step.
    recurrent (np.ndarray): (dim, 4 * dim).
    RETURNS (np.ndarray): The last h of each row, (n_rows, dim).
    """
    n_rows = active[0] if active else 0
    h = np.zeros((n_rows, len(recurrent)), np.float32)
    c = np.zeros_like(h)
    start = 0
    for n in active:
        gates = h[:n] @ recurrent + inputs[start : start + n]
        i, f, candidate, o = np.split(gates, 4, axis=1)
        c[:n] = sigmoid(f) * c[:n] + sigmoid(i) * np.tanh(candidate)
        h[:n] = sigmoid(o) * np.tanh(c[:n])
        start += n
    return h
