"""Write biLMs of the published sizes with random weights as HDF5 and JSON, and count
their floating point operations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MAX_CHARACTERS = 50
FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
TINY_FILTERS = [[1, 8], [2, 8], [3, 16], [7, 32]]


def _options(
    cell: int, projection: int, n_highway: int, filters: list[list[int]] = FILTERS
) -> dict[str, Any]:
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": projection,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": cell,
            "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": filters,
            "n_highway": n_highway,
            "embedding": {"dim": 16},
            "n_characters": 262,
            "max_characters_per_token": MAX_CHARACTERS,
        },
    }


SIZES = {
    "original": _options(4096, 512, 2),
    "medium": _options(2048, 256, 1),
    "small": _options(1024, 128, 1),
    "tiny": _options(48, 24, 1, TINY_FILTERS),  # for trying the benchmark out
}


def write_model(size: str, workdir: Path) -> Path:
    """Write a model of a size, unless an earlier run left it there.

    RETURNS (Path): The folder with `options.json` and `weights.hdf5`.
    """
    import h5py

    folder = workdir / size
    options_path = folder / "options.json"
    options = SIZES[size]
    if options_path.exists() and json.loads(options_path.read_text("utf8")) == options:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "weights.hdf5", "w") as weights:
        for name, array in _random_weights(options):
            weights.create_dataset(name, data=array)
    options_path.write_text(
        json.dumps(options, indent=2) + "\n", "utf8"
    )  # last: marks the model as complete
    return folder


def _random_weights(options: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the values of each array in `weights.hdf5`.

    Each matrix is scaled by its number of inputs, so that the activations neither
    vanish nor reach the clips. Then rounding errors stay small, and programs that add
    numbers in different orders get almost the same vectors.
    """
    random = np.random.default_rng(0)

    def normal(*shape: int, scale: float) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def matrix(n_in: int, n_out: int, gain: float = 1.0) -> np.ndarray:
        return normal(n_in, n_out, scale=gain / n_in**0.5)

    characters, lstm = options["char_cnn"], options["lstm"]
    char_dim = characters["embedding"]["dim"]
    projection, cell = lstm["projection_dim"], lstm["dim"]
    n_filters = sum(n for _, n in characters["filters"])
    yield "char_embed", normal(261, char_dim, scale=0.5)
    for i, (width, n) in enumerate(characters["filters"]):
        shape = (1, width, char_dim, n)
        yield f"CNN/W_cnn_{i}", normal(*shape, scale=(width * char_dim) ** -0.5)
        yield f"CNN/b_cnn_{i}", normal(n, scale=0.05)
    for k in range(characters["n_highway"]):
        for part, bias in (("transform", 0.0), ("carry", -2.0)):
            yield f"CNN_high_{k}/W_{part}", matrix(n_filters, n_filters)
            yield f"CNN_high_{k}/b_{part}", normal(n_filters, scale=0.05) + bias
    yield "CNN_proj/W_proj", matrix(n_filters, projection)
    yield "CNN_proj/b_proj", normal(projection, scale=0.05)
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            root = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            yield f"{root}/W_0", matrix(2 * projection, 4 * cell, gain=0.7)
            yield f"{root}/B", normal(4 * cell, scale=0.05)
            yield f"{root}/W_P_0", matrix(cell, projection)


def lstm_flops(options: dict[str, Any], sentences: list[list[str]]) -> float:
    """Count the operations of the LSTMs: one step per token, layer and direction.

    The steps over boundary words are the same in all sentences, so they do not count.
    """
    lstm = options["lstm"]
    cell, projection = lstm["dim"], lstm["projection_dim"]
    step = 2 * (2 * projection * 4 * cell + cell * projection)
    return float(2 * lstm["n_layers"] * step * sum(map(len, sentences)))


def cnn_flops(options: dict[str, Any], sentences: list[list[str]]) -> float:
    """Count the operations of the character CNN over the distinct words.

    A word of n bytes has n + 2 characters, because a mark is added at each end. A
    filter has one window that starts at each of them, and one more that stands for all
    windows of padding only.
    """
    characters = options["char_cnn"]
    filters = characters["filters"]
    window = 2 * characters["embedding"]["dim"] * sum(w * n for w, n in filters)
    n_filters = sum(n for _, n in filters)
    highways = characters["n_highway"] * 2 * n_filters * 2 * n_filters
    projection = 2 * n_filters * options["lstm"]["projection_dim"]
    total = 0.0
    for word in {word for sentence in sentences for word in sentence}:
        n_bytes = min(len(word.encode("utf8")), MAX_CHARACTERS - 2)
        total += (n_bytes + 3) * window + highways + projection
    return total
