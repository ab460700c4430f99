"""Write and compare random models in the format of options.json and weights.hdf5."""

import json

import h5py
import numpy as np
from helpers.reference import count_filters, random_arrays, random_options

VOCAB = ["<S>", "</S>", "<UNK>", "\u2028", "a b", "\u3000", "\x85", "나는", "the"]
N_WORDS = len(VOCAB)
# Options that are not sizes of the model. The original trainer writes most of them.
TRAINER_OPTIONS = {
    "bidirectional": True,
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "n_tokens_vocab": 9,
    "unroll_steps": 20,
    "author": {"name": "Ünal", "tags": ["한국어", None]},
}
SMALL_SIZES = {"lstm": {"dim": 4, "projection_dim": 3, "n_layers": 2}}
SMALL_SIZES["char_cnn"] = {"n_highway": 1, "filters": [[1, 2], [3, 3]]}


def write_pair(folder, options, arrays, *, prefix="", vocab=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{prefix}options.json").write_text(json.dumps(options))
    with h5py.File(folder / f"{prefix}weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    if vocab is not None:
        text = "".join(word + "\n" for word in vocab)
        (folder / "vocab.txt").write_bytes(text.encode())
    return folder


def load_arrays(path):
    arrays = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == np.dtype("<f4"), name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def random_model(seed, *, spare_projection=True):
    """Make the contents of options.json and weights.hdf5.

    Different seeds leave out different optional arrays.
    spare_projection (bool): Whether some models may have a projection after the CNN
        although its input and output have the same size.
    """
    rng = np.random.default_rng(seed)
    options = {**TRAINER_OPTIONS, **random_options(rng)}
    lstm = options["lstm"]
    optional = lstm["dim"] == lstm["projection_dim"] and rng.random() < 0.5
    n_words = N_WORDS if rng.random() < 0.5 else None
    arrays = random_arrays(options, rng, lstm_projection=not optional, n_words=n_words)
    if rng.random() < 0.5:
        arrays["char_embed"] = with_first_row(arrays["char_embed"])
    n, proj = count_filters(options), lstm["projection_dim"]
    if spare_projection and n == proj and seed % 3:
        arrays["CNN_proj/W_proj"] = rng.normal(size=(n, n)).astype(np.float32)
        arrays["CNN_proj/b_proj"] = rng.normal(size=n).astype(np.float32)
    return options, arrays


def with_first_row(table):
    """Add a first row of -0.0. Its bits differ from 0.0, so that tests can see whether
    the row was kept or replaced by zeros. (n, d) becomes (n + 1, d)."""
    return np.concatenate([np.full_like(table[:1], -0.0), table])


def small_model(n_words=N_WORDS):
    rng = np.random.default_rng(0)
    options = random_options(rng, **SMALL_SIZES)
    return options, random_arrays(options, rng, n_words=n_words)
