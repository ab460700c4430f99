"""Load and save the format of bilm-tf and AllenNLP: options.json and weights.hdf5."""

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...files import explain_errors
from ...hdf5_files import create_hdf5
from ..config import BiLMConfig, BytesConfig, LSTMConfig, SoftmaxConfig
from ..data import BiLMData
from ..errors import SourceError
from ..lexicon import Lexicon
from ..shapes import expected_shapes
from .build import build, check_shape
from .hdf5_arrays import HDF5Arrays, checksum_arrays, checksum_beside
from .native import is_native
from .replacement import ModelFiles
from .small_files import MAX_BYTES, check_file, read_json, read_vocab, vocab_bytes

OPTIONS, WEIGHTS, VOCAB = "options.json", "weights.hdf5", "vocab.txt"
PROJECTION = "CNN_proj/W_proj"
SOFTMAX = "softmax/W"


def _is_config(data: Any) -> bool:
    return isinstance(data, dict) and all(
        isinstance(data.get(section), dict) for section in ("lstm", "char_cnn")
    )


FILES = ModelFiles(WEIGHTS, (VOCAB,), OPTIONS, "spacy-elmo-new-hdf5", _is_config)


def find_hdf5(source: Path) -> tuple[Path, Path] | None:
    """Find the files of a model: options.json and weights.hdf5, both names with the
    same prefix, or options.json and an HDF5 file of any name.

    source (Path): A folder, or one of the two files.
    RETURNS (tuple[Path, Path] | None): The options file and the weights file; None if
        source is no such model.
    """
    folder = source if source.is_dir() else source.parent
    if FILES.is_being_replaced(folder) and (
        source.is_dir() or source.name in (OPTIONS, WEIGHTS)
    ):
        return FILES.path(folder, OPTIONS), FILES.path(folder, WEIGHTS)
    if source.is_dir() or source.name == OPTIONS:
        weights = _weights_in(folder)
    elif source.name.endswith(OPTIONS):
        weights = [source.with_name(_swap(source.name, OPTIONS, WEIGHTS))]
    else:
        weights = [source] if source.suffix == ".hdf5" else []
    if not weights and source.is_file() and source.name == OPTIONS:
        weights = [folder / WEIGHTS]
    if not weights:
        return None
    if len(weights) > 1:
        names = ", ".join(path.name for path in weights)
        raise SourceError(f"{folder}: found {names}; expected one, so name the file")
    options = folder / OPTIONS
    if weights[0].name.endswith(WEIGHTS):
        options = weights[0].with_name(_swap(weights[0].name, WEIGHTS, OPTIONS))
    for path in (options, weights[0]):
        if not path.is_file():
            raise SourceError(
                f"{path}: no such file; expected both {options.name} and "
                f"{weights[0].name} in this folder"
            )
    return options, weights[0]


def _weights_in(folder: Path) -> list[Path]:
    """List the HDF5 files that may be the weights: weights.hdf5 if it exists, else all
    *_weights.hdf5, else, if there is an options.json, all HDF5 files (simple_elmo calls
    it model.hdf5)."""
    files = sorted(path for path in folder.iterdir() if path.suffix == ".hdf5")
    plain = [path for path in files if path.name == WEIGHTS]
    named = [path for path in files if path.name.endswith("_" + WEIGHTS)]
    return plain or named or (files if (folder / OPTIONS).exists() else [])


def _swap(name: str, old: str, new: str) -> str:
    return name[: len(name) - len(old)] + new


def load_hdf5(options_path: Path, weights_path: Path) -> BiLMData:
    """Load a model. Arrays that are not part of a biLM are ignored."""
    check_file(weights_path, "an HDF5 file")
    h5py = _h5py()
    try:
        with h5py.File(weights_path, "r") as file:
            return _load(options_path, HDF5Arrays(weights_path, file))
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # broken files fail in many ways
        reason = str(error).split("\n")[0][:200]
        raise SourceError(
            f"{weights_path}: found no complete HDF5 file ({reason})"
        ) from None


def _load(options_path: Path, file: HDF5Arrays) -> BiLMData:
    weights_path = file.path
    try:
        config = config_from_options(read_json(options_path))
        if "char_embed" in file and isinstance(config.encoder, BytesConfig):
            rows = _n_rows(file, "char_embed")
            has_projection = PROJECTION in file
            if config.encoder.n_features != config.lstm.projection_dim:
                has_projection = True  # check_shape reports it if it is missing
            config = replace(
                config,
                encoder=replace(
                    config.encoder,
                    n_rows=rows if rows in (261, 262) else 261,
                    projection=has_projection,
                ),
            )
        if config.lstm.dim == config.lstm.projection_dim:
            first = _cell(0, 0) + "W_P_0"
            config = replace(
                config, lstm=replace(config.lstm, projection=first in file)
            )
    except ValueError as error:
        raise SourceError(
            str(error)
            if isinstance(error, SourceError)
            else f"{options_path}: {error}; expected the options of a character biLM"
        ) from None
    file.check_beside("options", options_path)
    if SOFTMAX in file:
        softmax = SoftmaxConfig(n_words=_n_rows(file, SOFTMAX))
        config = replace(config, softmax=softmax)
    # Check all shapes first: no memory is allocated for a file that does not fit.
    for key, shape, _ in places(config):
        check_shape(weights_path, key, file, shape)
        file.check(key)
    vocab = None
    # While a model is replaced, the weights are moved before the other files.
    vocab_path = options_path.with_name(VOCAB)
    if not vocab_path.exists():
        vocab_path = weights_path.with_name(VOCAB)
    if config.softmax is not None:
        if vocab_path.exists():
            max_bytes = MAX_BYTES + weights_path.stat().st_size
            vocab = read_vocab(vocab_path, config.softmax.n_words, max_bytes)
        file.check_beside("vocab", vocab_path)
    shapes = expected_shapes(config, Lexicon())
    arrays = {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
    for key, shape, place in places(config):
        file.read(key, place.view(arrays), shape)
    file.check_checksum(_views(config, arrays))
    return build(
        config,
        arrays,
        where=lambda name: weights_path,
        lexicon=Lexicon(),
        vocab=vocab,
    )


def _n_rows(file: HDF5Arrays, key: str) -> int:
    """Return the length of an array; 1 for a group or scalar, which check_shape refuses
    later."""
    shape = getattr(file[key], "shape", None)
    return max(1, int(shape[0])) if shape else 1


def save_hdf5(data: BiLMData, folder: Path) -> None:
    """Write options.json, weights.hdf5 and, if there is a softmax with a vocabulary,
    vocab.txt. The weights have checksums of the other two, so that files of different
    models are not loaded together. If there is a model in the folder, it can be loaded
    until the new one can be; files that are not those of a model are kept."""
    config = data.config
    if not isinstance(config.encoder, BytesConfig) or config.lstm.forget_bias != 1.0:
        raise SourceError(
            f"{folder}: found a model with an encoder of type '{config.encoder.type}' "
            f"and forget_bias {config.lstm.forget_bias}; HDF5 files hold models of "
            "type 'bytes' with forget_bias 1.0 only"
        )
    if config.softmax is not None and config.softmax.type == "adaptive":
        warnings.warn(
            "HDF5 files cannot hold an adaptive softmax, so it is left out",
            stacklevel=2,
        )
        config = replace(config, softmax=None)
    if is_native(folder):
        raise SourceError(
            f"{folder}: found a native model here, which would be loaded instead; "
            "expected another folder"
        )
    options = json.dumps(options_from_config(config), indent=2) + "\n"
    beside = {"options": options.encode(), "vocab": b""}
    if config.softmax is not None and data.vocab is not None:
        beside["vocab"] = vocab_bytes(folder / VOCAB, data.vocab)

    def write_weights(path: Path) -> None:
        attributes = checksum_arrays(_views(config, data.arrays))
        with create_hdf5(path, {**attributes, **checksum_beside(beside)}) as add:
            for key, shape, place in places(config):
                add(key, place.view(data.arrays).reshape(shape))

    def write(part: Path) -> None:
        with explain_errors(folder):
            write_weights(part / WEIGHTS)
            (part / OPTIONS).write_bytes(beside["options"])
            if beside["vocab"]:
                (part / VOCAB).write_bytes(beside["vocab"])

    used = [] if config.softmax is None else [VOCAB]
    FILES.replace(folder, write, _optional_in, used)


def _optional_in(folder: Path) -> tuple[str, ...]:
    """List the optional files of the model in a folder. A vocabulary without a softmax
    is not ours."""
    return (VOCAB,) if _has_softmax(folder / WEIGHTS) else ()


def _has_softmax(path: Path) -> bool:
    try:
        with _h5py().File(path, "r") as file:
            return SOFTMAX in file
    except OSError:  # missing, or not an HDF5 file
        return False


class Place(NamedTuple):
    """The place of a file's array in a model.

    name (str): The name of an array of the model.
    columns (slice): The columns of that array which the file's array holds.
    """

    name: str
    columns: slice = slice(None)

    def view(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a view of the model's array with the numbers of the file's array, in
        the same order."""
        return arrays[self.name][..., self.columns]


def places(config: BiLMConfig) -> Iterator[tuple[str, tuple[int, ...], Place]]:
    """Map the arrays of a file to the arrays of a model.

    YIELDS (tuple): The name of an array in the file, its shape there, and its place in
        the model.
    """
    encoder, lstm = config.encoder, config.lstm
    assert isinstance(encoder, BytesConfig)
    n = encoder.n_features
    proj = lstm.projection_dim
    cnn = "encoder.cnn."
    char_shape = (encoder.n_rows, encoder.char_dim)
    yield "char_embed", char_shape, Place(cnn + "embedding")
    for i, (width, number) in enumerate(encoder.filters):
        window = (1, width, encoder.char_dim, number)
        yield f"CNN/W_cnn_{i}", window, Place(f"{cnn}weights.{i}")
        yield f"CNN/b_cnn_{i}", (number,), Place(f"{cnn}biases.{i}")
    for k in range(encoder.n_highway):
        own = f"{cnn}highways.{k}."
        for part, columns in (("transform", slice(0, n)), ("carry", slice(n, None))):
            there = f"CNN_high_{k}/"
            yield f"{there}W_{part}", (n, n), Place(own + "weight", columns)
            yield f"{there}b_{part}", (n,), Place(own + "bias", columns)
    if config.encoder_projection:
        yield PROJECTION, (n, proj), Place("encoder.projection.weight")
        yield "CNN_proj/b_proj", (proj,), Place("encoder.projection.bias")
    for d, direction in enumerate(("forward_layers", "backward_layers")):
        for j in range(lstm.n_layers):
            own, there = f"{direction}.{j}.", _cell(d, j)
            yield there + "W_0", (2 * proj, 4 * lstm.dim), Place(own + "weight")
            yield there + "B", (4 * lstm.dim,), Place(own + "bias")
            if lstm.projection:
                yield there + "W_P_0", (lstm.dim, proj), Place(own + "projection")
    if config.softmax is not None:
        n_words = config.softmax.n_words
        yield SOFTMAX, (n_words, proj), Place("softmax.weight")
        yield "softmax/b", (n_words,), Place("softmax.bias")


def _views(
    config: BiLMConfig, arrays: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each array in a file, and a view of its numbers in a model."""
    for key, _, place in places(config):
        yield key, place.view(arrays)


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"


def config_from_options(options: Any) -> BiLMConfig:
    """Convert the contents of an options file to a config. Keys that a config does not
    have, which describe how the model was trained, are kept in `training`."""
    if not isinstance(options, dict):
        raise ValueError(f"found {type(options).__name__}")
    lstm = _section(options, "lstm", ["dim", "projection_dim", "n_layers"])
    cnn = _section(
        options, "char_cnn", ["embedding", "filters", "max_characters_per_token"]
    )
    embedding = _section(cnn, "embedding", ["dim"])
    return BiLMConfig(
        encoder=BytesConfig(
            char_dim=embedding["dim"],
            filters=cnn["filters"],
            n_highway=cnn.get("n_highway") or 0,
            activation=cnn.get("activation", "relu"),
            max_chars=cnn["max_characters_per_token"],
            n_characters=cnn.get("n_characters", 262),
        ),
        lstm=LSTMConfig(
            dim=lstm["dim"],
            projection_dim=lstm["projection_dim"],
            n_layers=lstm["n_layers"],
            cell_clip=lstm.get("cell_clip") or None,
            proj_clip=lstm.get("proj_clip") or None,
            skip_connections=lstm.get("use_skip_connections") or False,
        ),
        training=_more(options, options_from_config(BiLMConfig())),
    )


def _more(data: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of data whose keys are not in known, also within sections."""
    more = {key: value for key, value in data.items() if key not in known}
    for key, value in known.items():
        if isinstance(value, dict):
            inner = _more(data.get(key) or {}, value)
            more.update({key: inner} if inner else {})
    return more


def _merge(data: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Put the entries that _more returned back into data."""
    merged = {**more, **data}
    for key in data.keys() & more.keys():
        if isinstance(data[key], dict) and isinstance(more[key], dict):
            merged[key] = _merge(data[key], more[key])
    return merged


def options_from_config(config: BiLMConfig) -> dict[str, Any]:
    """Convert a config to the contents of an options file."""
    encoder, lstm = config.encoder, config.lstm
    assert isinstance(encoder, BytesConfig)
    options = {
        "lstm": {
            "cell_clip": lstm.cell_clip,
            "dim": lstm.dim,
            "n_layers": lstm.n_layers,
            "proj_clip": lstm.proj_clip,
            "projection_dim": lstm.projection_dim,
            "use_skip_connections": lstm.skip_connections,
        },
        "char_cnn": {
            "activation": encoder.activation,
            "embedding": {"dim": encoder.char_dim},
            "filters": encoder.filters,
            "max_characters_per_token": encoder.max_chars,
            "n_characters": encoder.n_characters,
            "n_highway": encoder.n_highway,
        },
    }
    return _merge(options, config.training)


def _section(data: dict[str, Any], name: str, keys: list[str]) -> dict[str, Any]:
    section = data.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"found no section '{name}'")
    for key in keys:
        if key not in section:
            raise ValueError(f"found no '{key}' in section '{name}'")
    return section


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise SourceError(
            "HDF5 files need the package h5py: pip install 'spacy-elmo[hdf5]'"
        ) from None
    return h5py
