"""Make small random biLMs by writing and loading options.json and weights.hdf5."""

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pytest
from helpers.reference import ReferenceBiLM, random_arrays, random_options

from spacy_elmo.bilm import BiLM, SourceError, load_bilm


class Pair(NamedTuple):
    """A biLM, and the slow reference implementation with the same weights."""

    bilm: BiLM
    reference: ReferenceBiLM


def write_files(folder: Path, options: dict, arrays: dict) -> None:
    """Write options.json and weights.hdf5."""
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array


def refusal(source):
    """Load a biLM that must be refused, and split the error message.

    RETURNS (tuple[str, str]): The file that the message names, and the text after it.
    """
    with pytest.raises(SourceError) as caught:
        load_bilm(source)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    file, _, sentence = str(caught.value).partition(": ")
    return file, sentence


def load_random(
    seed: int,
    *,
    n_rows: int = 261,
    scale: float = 0.5,
    lstm_projection: bool | None = None,
    n_words: int | None = None,
    **overrides,
) -> Pair:
    """Load a tiny random byte biLM from files, as a user would.

    n_rows (int): The rows of the character table: 261, or 262 with a first row that
        means "no word".
    scale, lstm_projection, n_words: See reference.random_arrays.
    overrides: Options that replace the random ones, in nested dicts.
    """
    rng = np.random.default_rng(seed)
    options = random_options(rng, **overrides)
    arrays = random_arrays(
        options, rng, scale, lstm_projection=lstm_projection, n_words=n_words
    )
    if n_rows == 262:
        no_word = rng.normal(0, 1, (1, options["char_cnn"]["embedding"]["dim"]))
        arrays["char_embed"] = np.concatenate([no_word, arrays["char_embed"]])
        arrays["char_embed"] = arrays["char_embed"].astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), options, arrays)
        return Pair(load_bilm(folder), ReferenceBiLM(options, arrays))
