"""Load models of ELMoForManyLangs: config.json, char.dic, word.dic and two state dicts.

Sizes follow from the shapes of the weights. Activation, clips and the maximum length of
words come from config.json or from a second config file that it names. Published models
lack the second file; they were all trained with the same values, which are used then.
"""

import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..config import BiLMConfig, CharsConfig, EncoderConfig, LSTMConfig, WordsConfig
from ..data import BiLMData
from ..errors import SourceError
from ..lexicon import Lexicon, n_rows
from .build import build, check_shape
from .small_files import MAX_BYTES, check_file, read_bytes, read_json

EMBEDDER, ENCODER = "token_embedder.pkl", "encoder.pkl"
WORDS, CHARS = "word_emb_layer.embedding.weight", "char_emb_layer.embedding.weight"
ZIP = b"PK\x03\x04"  # the first bytes of a zip file
PUBLISHED: dict[str, Any] = {
    "encoder": {"name": "elmo", "cell_clip": 3, "proj_clip": 3},
    "token_embedder": {"activation": "relu", "max_characters_per_token": 50},
}

Arrays = dict[str, np.ndarray]


def is_manylangs(folder: Path) -> bool:
    return (folder / ENCODER).exists() or (folder / EMBEDDER).exists()


def load_manylangs(folder: Path) -> BiLMData:
    path, settings = _read_settings(folder)
    embedder = _load_state(folder / EMBEDDER)
    encoder = _load_state(folder / ENCODER)
    try:
        token = settings["token_embedder"]
        config = BiLMConfig(
            encoder=_encoder_config(folder, embedder, token),
            lstm=_lstm_config(folder, encoder, settings["encoder"]),
        )
    except (KeyError, TypeError) as error:
        raise SourceError(f"{path}: no setting {error}") from None
    except ValueError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path}: {error}") from None
    lexicon = Lexicon()
    if CHARS in embedder:
        lexicon.characters = _read_lexicon(folder / "char.dic", len(embedder[CHARS]))
    if WORDS in embedder:
        lexicon.words = _read_lexicon(folder / "word.dic", len(embedder[WORDS]))
    arrays = _encoder_arrays(_Array(folder / EMBEDDER, embedder), config, lexicon)
    arrays.update(_lstm_arrays(_Array(folder / ENCODER, encoder), config.lstm))

    def where(name: str) -> Path:
        files = {"characters": "char.dic", "words": "word.dic"}
        layer = name.startswith(("forward_layers", "backward_layers"))
        return folder / files.get(name, ENCODER if layer else EMBEDDER)

    return build(config, arrays, where=where, lexicon=lexicon)


def _read_settings(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Read the settings that config.json points to.

    RETURNS (tuple): The file they were found in, and the settings.
    """
    config = folder / "config.json"
    data = read_json(config)
    if not isinstance(data, dict):
        raise SourceError(f"{config}: expected an object with a 'config_path'")
    if "config_path" in data:
        name = str(data["config_path"]).replace("\\", "/")
        for path in _paths_inside(folder, name):
            if os.path.isfile(path):  # also False if the name is too long
                config, data = path, read_json(path)
                break
        else:
            warnings.warn(
                f"{config}: its config '{name}' is not here; activation relu, clips of "
                "3 and 50 characters a word are assumed, as in all published models",
                stacklevel=2,
            )
            return config, PUBLISHED
    for section in ("encoder", "token_embedder"):
        if not isinstance(data, dict) or not isinstance(data.get(section), dict):
            raise SourceError(f"{config}: found no section '{section}'")
    if str(data["encoder"].get("name", "elmo")).lower() != "elmo":
        raise SourceError(
            f"{config}: found an encoder of name '{data['encoder']['name']}'; expected "
            "'elmo', the only one that has layers"
        )
    return config, data


def _paths_inside(folder: Path, name: str) -> list[Path]:
    """Return where the named file may be. Published configs name files of the machine
    they were made on; nothing outside of the model's folder is read."""
    parts = name.split("/")
    own = [] if ".." in parts or ":" in name or not parts[0] else [folder / name]
    return [*own, folder / parts[-1]] if parts[-1] else own


def _load_state(path: Path) -> Arrays:
    try:
        import torch
    except ImportError:
        raise SourceError(
            f"{path}: files of ELMoForManyLangs need torch: "
            "pip install 'spacy-elmo[train]'"
        ) from None
    size = check_file(path, "a state dict")
    _check_zip(path, size)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # broken files fail in many ways
        reason = str(error).strip().split("\n")[0][:200]
        raise SourceError(
            f"{path}: cannot be read as plain tensors and nothing else is loaded from "
            f"a pickle ({reason}); expected a torch state dict"
        ) from None
    if not isinstance(state, dict) or not all(
        isinstance(value, torch.Tensor) for value in state.values()
    ):
        raise SourceError(
            f"{path}: found {type(state).__name__}; expected a torch state dict"
        )
    declared = 0
    for name, tensor in state.items():
        plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
        if not plain or not tensor.is_floating_point():
            kind = f"{tensor.dtype}, {tensor.layout}, {tensor.device}"
            raise SourceError(
                f"{path}: found '{name}' to be {kind}; expected plain floating-point "
                "numbers"
            )
        # A tensor can be larger than its numbers in the file, by repeating them.
        declared += tensor.numel() * tensor.element_size()
    if declared > size:
        raise SourceError(
            f"{path}: found tensors of {declared:,} bytes in {size:,}; expected no "
            "more than the size of the file"
        )
    # Parameters that were saved whole still expect gradients.
    plain_state = {str(name): tensor.detach() for name, tensor in state.items()}
    return {name: t.float().contiguous().numpy() for name, t in plain_state.items()}


def _check_zip(path: Path, size: int) -> None:
    """Raise SourceError if a state dict declares more than the size of its file, or if
    its contents do not have the checksums that it stores. torch compresses nothing, and
    does not compare the checksums itself."""
    with path.open("rb") as opened:
        if opened.read(len(ZIP)) != ZIP:  # torch decides in the same way
            return  # files of old torch are plain pickles without checksums
    try:
        with zipfile.ZipFile(path) as file:
            declared = sum(entry.file_size for entry in file.infolist())
            damaged = file.testzip() if declared <= size else None
    except Exception as error:  # broken files fail in many ways
        reason = str(error).split("\n")[0][:200]
        raise SourceError(
            f"{path}: found no complete zip file ({reason}); expected a torch state "
            "dict"
        ) from None
    if declared > size:
        raise SourceError(
            f"{path}: found a zip file that declares {declared:,} bytes in {size:,}; "
            "expected a torch state dict, which is not compressed"
        )
    if damaged is not None:
        raise SourceError(
            f"{path}: found contents of '{damaged}' that do not match its checksum "
            "in the zip file; expected the file as it was written"
        )


def _read_lexicon(path: Path, max_rows: int) -> dict[str, int]:
    contents = read_bytes(path, "a list of symbols", 100 * max_rows + MAX_BYTES)
    try:
        lines = contents.decode("utf-8-sig").split("\n")
    except ValueError as error:
        raise SourceError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    symbols: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        parts = line.strip().split("\t")
        if len(parts) == 1:  # the symbol is white space, which was stripped off
            parts.insert(0, "\u3000")  # the original program uses this symbol for it
        if len(parts) != 2 or not parts[1].isdecimal() or parts[1][18:]:
            raise SourceError(
                f"{path}: line {number} is {line!r}; expected a symbol, a tab, a number"
            )
        symbols[parts[0]] = int(parts[1])
    if n_rows(symbols) > max_rows:
        raise SourceError(
            f"{path}: found {n_rows(symbols)} symbols; expected at most {max_rows}, "
            "the rows of its table"
        )
    return symbols


def _encoder_config(
    folder: Path, state: Arrays, settings: dict[str, Any]
) -> EncoderConfig:
    path = folder / EMBEDDER
    word_dim = _shape(path, state, WORDS, 2)[1] if WORDS in state else 0
    if CHARS not in state:
        if not word_dim:
            raise SourceError(
                f"{folder / EMBEDDER}: found neither '{CHARS}' nor '{WORDS}'; expected "
                "a table of characters or of words"
            )
        # The original program cuts words before it looks them up in the table.
        cut = settings["max_characters_per_token"] - 2 if _is_cnn(settings) else None
        return WordsConfig(dim=word_dim, projection=True, max_chars=cut)
    char_dim = _shape(path, state, CHARS, 2)[1]
    if "char_lstm.weight_ih_l0" in state:
        return CharsConfig(reader="lstm", char_dim=char_dim, word_dim=word_dim)
    filters: list[list[int]] = []
    while not filters or f"convolutions.{len(filters)}.weight" in state:
        shape = _shape(path, state, f"convolutions.{len(filters)}.weight", 3)
        filters.append([shape[2], shape[0]])
    n_highway = 0
    while f"highways._layers.{n_highway}.weight" in state:
        n_highway += 1
    _check_number(path, "highways", n_highway, settings.get("n_highway"))
    _check_number(path, "filters", filters, settings.get("filters"))
    return CharsConfig(
        char_dim=char_dim,
        word_dim=word_dim,
        filters=filters,
        n_highway=n_highway,
        activation=settings["activation"],
        max_chars=settings["max_characters_per_token"],
    )


def _lstm_config(folder: Path, state: Arrays, settings: dict[str, Any]) -> LSTMConfig:
    path = folder / ENCODER
    shape = _shape(path, state, "forward_layer_0.state_projection.weight", 2)
    n_layers = 1
    while f"forward_layer_{n_layers}.state_projection.weight" in state:
        n_layers += 1
    _check_number(path, "layers", n_layers, settings.get("n_layers"))
    return LSTMConfig(
        dim=shape[1],
        projection_dim=shape[0],
        n_layers=n_layers,
        cell_clip=settings["cell_clip"] or None,
        proj_clip=settings["proj_clip"] or None,
        forget_bias=0.0,  # it is part of the bias in the file
    )


def _is_cnn(settings: dict[str, Any]) -> bool:
    return str(settings.get("name", "cnn")).lower() == "cnn"


def _shape(path: Path, state: Arrays, name: str, n_dims: int) -> tuple[int, ...]:
    if name not in state or state[name].ndim != n_dims:
        found = f"of shape {tuple(state[name].shape)}" if name in state else "missing"
        raise SourceError(
            f"{path}: found '{name}' {found}; expected {n_dims} dimensions"
        )
    return tuple(state[name].shape)


def _check_number(path: Path, what: str, found: Any, expected: Any) -> None:
    if expected is not None and found != expected:
        raise SourceError(
            f"{path}: found {found} as its {what}; expected {expected}, as the config "
            "has it"
        )


class _Array:
    """Returns arrays of a state dict by name, after checking their shape."""

    def __init__(self, path: Path, state: Arrays) -> None:
        self.path = path
        self.state = state

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        check_shape(self.path, name, self.state, shape)
        return self.state[name]


def _encoder_arrays(array: _Array, config: BiLMConfig, lexicon: Lexicon) -> Arrays:
    encoder = config.encoder
    proj = config.lstm.projection_dim
    arrays: Arrays = {}
    n_features = 0
    if WORDS in array.state:
        # A table may have rows at its end that belong to no symbol.
        table = array.state[WORDS][: n_rows(lexicon.words)]
        alone = isinstance(encoder, WordsConfig)
        arrays["encoder.table" if alone else "encoder.word_table"] = table
        n_features += table.shape[1]
    if isinstance(encoder, CharsConfig):
        chars = array.state[CHARS][: n_rows(lexicon.characters)]
        if encoder.reader == "cnn":
            arrays.update(_cnn_arrays(array, encoder, chars))
            n_features += sum(number for _, number in encoder.filters)
        else:
            arrays["encoder.chars.embedding"] = chars
            size = 4 * encoder.char_dim
            for suffix in ("l0", "l0_reverse"):
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    name = f"{kind}_{suffix}"
                    shape = (size, encoder.char_dim)[: 1 if "bias" in kind else 2]
                    arrays[f"encoder.chars.lstm.{name}"] = array(
                        f"char_lstm.{name}", *shape
                    )
            n_features += 2 * encoder.char_dim
    weight = array("projection.weight", proj, n_features)
    arrays["encoder.projection.weight"] = np.ascontiguousarray(weight.T)
    arrays["encoder.projection.bias"] = array("projection.bias", proj)
    return arrays


def _cnn_arrays(array: _Array, encoder: CharsConfig, chars: np.ndarray) -> Arrays:
    own = "encoder.chars.cnn."
    arrays = {own + "embedding": chars}
    for i, (width, number) in enumerate(encoder.filters):
        name = f"convolutions.{i}."
        weight = array(name + "weight", number, encoder.char_dim, width)
        flat = weight.transpose(2, 1, 0).reshape(-1, number)  # (width * char_dim, n)
        arrays[f"{own}weights.{i}"] = flat
        arrays[f"{own}biases.{i}"] = array(name + "bias", number)
    n = sum(number for _, number in encoder.filters)
    # Their gate is the share of the input, ours that of the transformed input. Negate
    # the weights, because sigmoid(-x) is 1 - sigmoid(x).
    sign = np.ones(2 * n, np.float32)
    sign[n:] = -1
    for k in range(encoder.n_highway):
        name = f"highways._layers.{k}."
        weight = array(name + "weight", 2 * n, n).T * sign
        arrays[f"{own}highways.{k}.weight"] = np.ascontiguousarray(weight)
        arrays[f"{own}highways.{k}.bias"] = array(name + "bias", 2 * n) * sign
    return arrays


def _lstm_arrays(array: _Array, config: LSTMConfig) -> Arrays:
    dim, proj = config.dim, config.projection_dim
    arrays: Arrays = {}
    for direction in ("forward", "backward"):
        for j in range(config.n_layers):
            name, own = f"{direction}_layer_{j}.", f"{direction}_layers.{j}."
            x = array(name + "input_linearity.weight", 4 * dim, proj)
            h = array(name + "state_linearity.weight", 4 * dim, proj)
            bias = array(name + "state_linearity.bias", 4 * dim)
            down = array(name + "state_projection.weight", proj, dim)
            weight = _reorder_gates(np.concatenate([x, h], 1))
            arrays[own + "weight"] = np.ascontiguousarray(weight.T)
            arrays[own + "bias"] = _reorder_gates(bias)
            arrays[own + "projection"] = np.ascontiguousarray(down.T)
    return arrays


def _reorder_gates(rows: np.ndarray) -> np.ndarray:
    """Reorder input, forget, candidate, output gates to the order of ProjectedLSTM."""
    i, f, candidate, o = np.split(rows, 4)
    return np.concatenate([i, candidate, f, o])
