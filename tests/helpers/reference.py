"""A slow and simple ELMo biLM in float64 numpy, to test the fast one against.

Shape letters: C characters per word, d character dimension, F filters in total,
P projection dimension, D cell dimension, L LSTM layers, n words of a sentence,
T = n + 2 positions (the words and the two sentence boundaries), V words of the output
vocabulary.
"""

import numpy as np

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 256, 257, 258, 259, 260
N_CHARACTERS = 261  # plus a first row for "no word" in tables of 262 rows
FORWARD, BACKWARD = 0, 1

# The LSTM state of one row of the batch: row_state[direction][layer] is a tuple of
# h (P,) and c (D,).
RowState = list[list[tuple[np.ndarray, np.ndarray]]]


def merge(base: dict, changes: dict) -> dict:
    """Return a copy of base with changes, which may be nested dicts like base."""
    merged = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = merge(merged[key], value)
        merged[key] = value
    return merged


def random_filters(rng: np.random.Generator, n_filters: int) -> list[list[int]]:
    """Draw [[width, count], ...] with widths from 1 to 4 in random order. The sum of
    the counts is n_filters."""
    filters = []
    while n_filters > 0:
        count = int(rng.integers(1, n_filters + 1))
        filters.append([int(rng.integers(1, 5)), count])
        n_filters -= count
    return filters


def random_clip(rng: np.random.Generator) -> float | None:
    """Draw a clip. Half of them are so small that they have an effect; the others are 3
    or None."""
    small = round(float(rng.uniform(0.3, 1.0)), 3)
    return [small, small, 3.0, None][rng.integers(4)]


def random_options(rng: np.random.Generator, **overrides) -> dict:
    """Draw the options of a tiny biLM.

    overrides: Options that replace the random ones, in nested dicts.
    """
    projection_dim = int(rng.integers(1, 8))
    dim, n_filters, n_positions = map(int, rng.integers([1, 1, 6], [8, 8, 13]))
    if rng.random() < 0.3:
        dim = projection_dim
    if rng.random() < 0.3:
        n_filters = projection_dim  # then the CNN needs no projection
    if rng.random() < 0.3:
        n_positions = 50
    options = {
        "lstm": {
            "cell_clip": random_clip(rng),
            "dim": dim,
            "n_layers": int(rng.integers(1, 4)),
            "proj_clip": random_clip(rng),
            "projection_dim": projection_dim,
            "use_skip_connections": bool(rng.integers(2)),
        },
        "char_cnn": {
            "activation": ["relu", "tanh"][rng.integers(2)],
            "embedding": {"dim": int(rng.integers(1, 8))},
            "filters": random_filters(rng, n_filters),
            "max_characters_per_token": n_positions,
            "n_characters": int(rng.integers(261, 263)),
            "n_highway": int(rng.integers(0, 3)),
        },
    }
    return merge(options, overrides)


def cell_key(direction: int, layer: int) -> str:
    """Return the name of the HDF5 group of one LSTM layer."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def count_filters(options: dict) -> int:
    """Return F, the number of filters of all widths."""
    return sum(count for _, count in options["char_cnn"]["filters"])


def random_arrays(
    options: dict,
    rng: np.random.Generator,
    scale: float = 0.5,
    *,
    lstm_projection: bool | None = None,
    n_words: int | None = None,
) -> dict[str, np.ndarray]:
    """Draw the float32 weights of a biLM from normal distributions.

    scale (float): The standard deviation, except that of the characters, which is 1.
    lstm_projection (bool): False leaves out the projections of the LSTMs.
    n_words (int): The size of the softmax. None leaves it out.
    RETURNS (dict[str, np.ndarray]): The arrays by their HDF5 names. The table of
        characters has 261 rows.
    """
    lstm, cnn = options["lstm"], options["char_cnn"]
    D, P = lstm["dim"], lstm["projection_dim"]
    d, F = cnn["embedding"]["dim"], count_filters(options)
    if lstm_projection is False and D != P:
        raise ValueError("an LSTM without projection needs dim == projection_dim")

    shapes = {"char_embed": (N_CHARACTERS, d)}
    for i, (width, count) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, d, count)
        shapes[f"CNN/b_cnn_{i}"] = (count,)
    for k in range(cnn["n_highway"]):
        for part in ("transform", "carry"):
            shapes[f"CNN_high_{k}/W_{part}"] = (F, F)
            shapes[f"CNN_high_{k}/b_{part}"] = (F,)
    if F != P:
        shapes["CNN_proj/W_proj"] = (F, P)
        shapes["CNN_proj/b_proj"] = (P,)
    for direction in (FORWARD, BACKWARD):
        for layer in range(lstm["n_layers"]):
            key = cell_key(direction, layer)
            shapes[f"{key}/W_0"] = (P + P, 4 * D)
            shapes[f"{key}/B"] = (4 * D,)
            if lstm_projection is not False:
                shapes[f"{key}/W_P_0"] = (D, P)
    if n_words is not None:
        shapes["softmax/W"] = (n_words, P)
        shapes["softmax/b"] = (n_words,)

    arrays = {name: rng.normal(0, scale, shape) for name, shape in shapes.items()}
    arrays["char_embed"] = rng.normal(0, 1, shapes["char_embed"])  # makes words differ
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def pad_ids(ids: list[int], n_positions: int) -> list[int]:
    """Add begin-of-word and end-of-word, then cut or pad to n_positions ids."""
    ids = [BEGIN_WORD, *ids[: n_positions - 2], END_WORD]
    return ids + [PADDING] * (n_positions - len(ids))


def sentence_ids(words: list[str], n_positions: int) -> np.ndarray:
    """Return the character ids of the words and of both sentence boundaries, (T, C)."""
    spellings = [list(word.encode("utf-8", "ignore")) for word in words]
    spellings = [[BEGIN_SENTENCE], *spellings, [END_SENTENCE]]
    return np.array([pad_ids(ids, n_positions) for ids in spellings])


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0)


def clip(x: np.ndarray, limit: float | None) -> np.ndarray:
    """Clip x to the range from -limit to limit; None leaves it unchanged."""
    return x if limit is None else np.clip(x, -limit, limit)


def convolve_max(chars: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute the maximum of each filter over all windows of a word.

    chars: The character vectors, (C, d).
    W, b: The weights of n filters of one width, (width, d, n) and (n,).
    RETURNS (np.ndarray): (n,)
    """
    width = W.shape[0]
    responses = []
    for start in range(len(chars) - width + 1):
        window = chars[start : start + width]  # (width, d)
        responses.append(np.tensordot(window, W, axes=2) + b)  # (n,)
    return np.max(responses, axis=0)  # (n,)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Compute natural log probabilities from logits: (V,) to (V,)."""
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


class ReferenceBiLM:
    """A biLM with the options of options.json and the arrays of weights.hdf5."""

    def __init__(self, options: dict, arrays: dict[str, np.ndarray]):
        self.options = options
        self.lstm, self.cnn = options["lstm"], options["char_cnn"]
        self.arrays = {k: np.asarray(v, dtype=np.float64) for k, v in arrays.items()}
        # A first row for "no word" moves all characters down by one row.
        self.id_shift = len(self.arrays["char_embed"]) - N_CHARACTERS
        if self.id_shift not in (0, 1):
            raise ValueError("char_embed must have 261 or 262 rows")

    def highway(self, k: int, x: np.ndarray) -> np.ndarray:
        """Compute highway layer k: (F,) to (F,)."""
        a, key = self.arrays, f"CNN_high_{k}"
        transformed = relu(x @ a[f"{key}/W_transform"] + a[f"{key}/b_transform"])
        gate = sigmoid(x @ a[f"{key}/W_carry"] + a[f"{key}/b_carry"])
        return gate * transformed + (1.0 - gate) * x

    def word_vector(self, ids: np.ndarray) -> np.ndarray:
        """Compute x_k, the context-free vector of one word: ids (C,) to (P,)."""
        a = self.arrays
        activation = {"relu": relu, "tanh": np.tanh}[self.cnn["activation"]]
        chars = a["char_embed"][ids + self.id_shift]  # (C, d)
        parts = []
        for i in range(len(self.cnn["filters"])):
            W, b = a[f"CNN/W_cnn_{i}"][0], a[f"CNN/b_cnn_{i}"]
            parts.append(activation(convolve_max(chars, W, b)))
        x = np.concatenate(parts)  # (F,)
        for k in range(self.cnn["n_highway"]):
            x = self.highway(k, x)
        if count_filters(self.options) != self.lstm["projection_dim"]:
            x = x @ a["CNN_proj/W_proj"] + a["CNN_proj/b_proj"]
        return x  # (P,)

    def zero_state(self) -> RowState:
        """Return the LSTM state of a row before its first sentence: zeros."""
        h, c = np.zeros(self.lstm["projection_dim"]), np.zeros(self.lstm["dim"])
        return [[(h, c) for _ in range(self.lstm["n_layers"])] for _ in range(2)]

    def step(self, direction, layer, x, h, c) -> tuple[np.ndarray, np.ndarray]:
        """Compute one LSTM step: x (P,), h (P,), c (D,) to new h (P,) and c (D,)."""
        a, key = self.arrays, cell_key(direction, layer)
        gates = np.concatenate([x, h]) @ a[f"{key}/W_0"] + a[f"{key}/B"]  # (4 D,)
        i, g, f, o = np.split(gates, 4)
        c = sigmoid(i) * np.tanh(g) + sigmoid(f + 1.0) * c
        c = clip(c, self.lstm.get("cell_clip"))
        h = sigmoid(o) * np.tanh(c)  # (D,)
        if f"{key}/W_P_0" in a:  # otherwise proj_clip has no effect
            h = clip(h @ a[f"{key}/W_P_0"], self.lstm.get("proj_clip"))
        return h, c

    def run_layer(self, direction, layer, inputs, state):
        """Run one LSTM layer over one sentence: (T, P) to (T, P) and the new (h, c).

        Inputs and outputs are in text order, but the backward direction starts at the
        last position.
        """
        h, c = state
        outputs = np.zeros_like(inputs)
        positions = range(len(inputs))
        for t in positions if direction == FORWARD else reversed(positions):
            h, c = self.step(direction, layer, inputs[t], h, c)
            outputs[t] = h
        if self.lstm["use_skip_connections"] and layer > 0:
            outputs = outputs + inputs
        return outputs, (h, c)

    def run_sentence(self, words, state) -> tuple[np.ndarray, np.ndarray, RowState]:
        """Run both directions over one sentence with its boundaries.

        RETURNS: The forward layers and the backward layers, (L + 1, T, P) each, and
            the new state.
        """
        ids = sentence_ids(words, self.cnn["max_characters_per_token"])
        x = np.array([self.word_vector(row) for row in ids])  # (T, P)
        stacks, new_state = [], []
        for direction in (FORWARD, BACKWARD):
            layers, ends = [x], []
            for layer in range(self.lstm["n_layers"]):
                start = state[direction][layer]
                outputs, end = self.run_layer(direction, layer, layers[-1], start)
                layers.append(outputs)
                ends.append(end)
            stacks.append(np.stack(layers))
            new_state.append(ends)
        return stacks[FORWARD], stacks[BACKWARD], new_state

    def embed(
        self, sentences: list[list[str]], state: list[RowState] | None = None
    ) -> tuple[list[np.ndarray], list[RowState]]:
        """Compute the layers of a batch of sentences.

        state: The states after the last call; it is not modified. Sentence r begins
            with state[r], or with zeros if there is no state[r].
        RETURNS: The layers of each sentence without its boundaries, (L + 1, n, 2 P),
            and the new states. States without a sentence are unchanged.
        """
        new_state = list(state or [])
        vectors = []
        for r, words in enumerate(sentences):
            if r == len(new_state):
                new_state.append(self.zero_state())
            forward, backward, new_state[r] = self.run_sentence(words, new_state[r])
            both = np.concatenate([forward, backward], axis=-1)  # (L + 1, T, 2 P)
            vectors.append(both[:, 1:-1])
        return vectors, new_state

    def log_probs(
        self, sentence: list[str], vocab: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the log probabilities of all targets, in text order.

        The forward targets are word 1 to word n and </S>. The backward targets are <S>
        and word 1 to word n.
        RETURNS: Forward and backward log probabilities, (n + 1,) each.
        """
        unknown = vocab.index("<UNK>")
        tokens = ["<S>", *sentence, "</S>"]
        targets = [vocab.index(t) if t in vocab else unknown for t in tokens]  # (T,)
        forward, backward, _ = self.run_sentence(sentence, self.zero_state())

        def log_prob(top: np.ndarray, target: int) -> float:
            logits = self.arrays["softmax/W"] @ top + self.arrays["softmax/b"]  # (V,)
            return log_softmax(logits)[target]

        n = len(sentence)
        return (
            np.array([log_prob(forward[-1, k], targets[k + 1]) for k in range(n + 1)]),
            np.array([log_prob(backward[-1, k + 1], targets[k]) for k in range(n + 1)]),
        )
