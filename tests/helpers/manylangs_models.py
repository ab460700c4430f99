"""Write small random models of ELMoForManyLangs, and run them with that package."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

EMBEDDER, ENCODER = "token_embedder.pkl", "encoder.pkl"
SPECIAL_CHARACTERS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
SPECIAL_WORDS = ["<bos>", "<eos>", "<oov>", "<pad>"]
CHARACTERS = [*SPECIAL_CHARACTERS, *"abcdefghijklmnopqrst", *"나는학교에간다", "\u3000"]
WORDS = [*SPECIAL_WORDS, "a", "cat", "sat", "나는", "\u3000", "abcdefghijklmnop"]
SETTINGS = "configs/settings.json"  # config.json beside the weights names it


def make_settings(**changes) -> dict:
    """Make the settings of a model.

    changes: Settings to change. `lstm__dim` is `dim` in the section of the LSTMs,
        `token__filters` is `filters` in the section of the token embedder.
    """
    sections = {
        "encoder": {
            "name": "elmo",
            "projection_dim": 6,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": 7,
            "n_layers": 2,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": [[1, 3], [3, 4], [2, 5]],
            "n_highway": 1,
            "word_dim": 0,
            "char_dim": 4,
            "max_characters_per_token": 12,
        },
    }
    for key, value in changes.items():
        part, _, name = key.partition("__")
        owner = sections[{"lstm": "encoder", "token": "token_embedder"}[part]]
        assert name in owner
        owner[name] = value
    return {**sections, "classifier": {"name": "softmax"}, "dropout": 0.0}


def embedder_shapes(token: dict, projection_dim: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in token_embedder.pkl."""
    char_dim, word_dim = token["char_dim"], token["word_dim"]
    shapes: dict[str, tuple[int, ...]] = {}
    n_features = word_dim
    if word_dim:
        shapes["word_emb_layer.embedding.weight"] = (len(WORDS), word_dim)
    if char_dim:
        shapes["char_emb_layer.embedding.weight"] = (len(CHARACTERS), char_dim)
    if char_dim and token["name"] == "lstm":
        n_features += 2 * char_dim
        for end in ("l0", "l0_reverse"):
            shapes[f"char_lstm.weight_ih_{end}"] = (4 * char_dim, char_dim)
            shapes[f"char_lstm.weight_hh_{end}"] = (4 * char_dim, char_dim)
            shapes[f"char_lstm.bias_ih_{end}"] = (4 * char_dim,)
            shapes[f"char_lstm.bias_hh_{end}"] = (4 * char_dim,)
    elif char_dim:
        n = sum(number for _, number in token["filters"])
        n_features += n
        for i, (width, number) in enumerate(token["filters"]):
            shapes[f"convolutions.{i}.weight"] = (number, char_dim, width)
            shapes[f"convolutions.{i}.bias"] = (number,)
        for k in range(token["n_highway"]):
            shapes[f"highways._layers.{k}.weight"] = (2 * n, n)
            shapes[f"highways._layers.{k}.bias"] = (2 * n,)
    shapes["projection.weight"] = (projection_dim, n_features)
    shapes["projection.bias"] = (projection_dim,)
    return shapes


def encoder_shapes(lstm: dict) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in encoder.pkl."""
    dim, projection_dim = lstm["dim"], lstm["projection_dim"]
    shapes: dict[str, tuple[int, ...]] = {}
    for j in range(lstm["n_layers"]):
        for direction in ("forward", "backward"):
            name = f"{direction}_layer_{j}"
            shapes[f"{name}.input_linearity.weight"] = (4 * dim, projection_dim)
            shapes[f"{name}.state_linearity.weight"] = (4 * dim, projection_dim)
            shapes[f"{name}.state_linearity.bias"] = (4 * dim,)
            shapes[f"{name}.state_projection.weight"] = (projection_dim, dim)
    return shapes


def random_state(shapes: dict, rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """Draw normal weights, scaled so that outputs are about as large as inputs."""
    state = {}
    for name, shape in shapes.items():
        n_in = 1 if "embedding" in name else np.prod(shape[1:])
        array = rng.normal(0, 0.9 / np.sqrt(n_in), shape)
        state[name] = torch.from_numpy(array.astype(np.float32))
    return state


def write_json(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def write_symbols(path: Path, symbols: list[str], rng: np.random.Generator) -> None:
    """Write a .dic file. Each line has a symbol and its row number; the row numbers are
    in random order."""
    rows = rng.permutation(len(symbols))
    lines = [f"{symbol}\t{row}\n" for symbol, row in zip(symbols, rows, strict=True)]
    path.write_bytes("".join(lines).encode("utf-8"))


def write_model(folder: Path, *, seed: int = 0, **changes) -> Path:
    """Write a random model to a folder.

    changes: Settings to change, as for make_settings.
    RETURNS (Path): The folder.
    """
    rng = np.random.default_rng(seed)
    settings = make_settings(**changes)
    token, lstm = settings["token_embedder"], settings["encoder"]
    write_json(folder / SETTINGS, settings)
    write_json(folder / "config.json", {"config_path": SETTINGS, "gpu": -1})
    if token["char_dim"]:
        write_symbols(folder / "char.dic", CHARACTERS, rng)
    if token["word_dim"]:
        write_symbols(folder / "word.dic", WORDS, rng)
    embedder = random_state(embedder_shapes(token, lstm["projection_dim"]), rng)
    torch.save(embedder, folder / EMBEDDER)
    torch.save(random_state(encoder_shapes(lstm), rng), folder / ENCODER)
    return folder


def import_package() -> ModuleType:
    """Import ELMoForManyLangs, or skip the test if it is not installed.

    It fails with the current release of the package `overrides`, of which it uses only
    one decorator. Here that package is replaced by a decorator that does nothing.
    """
    stub = ModuleType("overrides")
    stub.overrides = lambda method: method  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "overrides", stub)
        return pytest.importorskip("elmoformanylangs")


def original_vectors(folder: Path, sentences: list[list[str]]) -> list[np.ndarray]:
    """Compute all layers with ELMoForManyLangs, in one batch.

    RETURNS (list[np.ndarray]): One (n_layers, n_words, width) array per sentence.
    """
    embedder = import_package().Embedder(str(folder), batch_size=len(sentences))
    with torch.no_grad():
        return embedder.sents2elmo(sentences, output_layer=-2)


def original_lstm_vectors(folder: Path, sentence: list[str]) -> np.ndarray:
    """Compute original_vectors of one sentence for models with an LSTM over characters.

    ELMoForManyLangs has a bug with such models: it concatenates arrays of shape
    (n_words, size) along dimension 2, which they lack. Here they are made
    (1, n_words, size) first.
    """
    import_package()
    from elmoformanylangs.modules import token_embedder

    def join(parts: list[torch.Tensor], dim: int) -> torch.Tensor:
        return torch.cat([x.view(1, -1, x.shape[-1]) for x in parts], dim)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_embedder, "torch", SimpleNamespace(cat=join))
        return original_vectors(folder, [sentence])[0]
