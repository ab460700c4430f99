"""Load and save the native folder. It has config.json and weights.safetensors, and may
have softmax.safetensors with vocab.txt (to use the model as a language model) and
lexicon.json (if the encoder has a lexicon)."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor

from ...files import write_atomically
from ..config import BiLMConfig
from ..encoders import Lexicon
from ..errors import SourceError
from .build import build
from .quantize import dequantize, quantize
from .small_files import read_json, read_vocab, write_json, write_vocab
from .tensors import save_tensors

if TYPE_CHECKING:
    from ..model import BiLM

FORMAT = "spacy-elmo"
VERSION = 1
CONFIG, WEIGHTS, LEXICON = "config.json", "weights.safetensors", "lexicon.json"
SOFTMAX, VOCAB = "softmax.safetensors", "vocab.txt"


def is_native(folder: Path) -> bool:
    return (folder / WEIGHTS).exists()


def load_native(folder: Path) -> "BiLM":
    config = _parse_config(folder / CONFIG, read_json(folder / CONFIG))
    tensors = _load_tensors(folder / WEIGHTS)
    vocab = None
    if config.softmax is not None and not (folder / SOFTMAX).exists():
        config = replace(config, softmax=None)  # vectors do not need it
    if config.softmax is not None:
        softmax = _load_tensors(folder / SOFTMAX)
        tensors.update({f"softmax.{name}": t for name, t in softmax.items()})
        if (folder / VOCAB).exists():
            vocab = read_vocab(folder / VOCAB, config.softmax.n_words)

    def where(name: str) -> Path:
        files = {"characters": LEXICON, "words": LEXICON, "config": CONFIG}
        default = SOFTMAX if name.startswith("softmax.") else WEIGHTS
        return folder / files.get(name, default)

    lexicon = Lexicon()
    if (folder / LEXICON).exists():
        lexicon = _parse_lexicon(folder / LEXICON, read_json(folder / LEXICON))
    return build(config, tensors, where=where, lexicon=lexicon, vocab=vocab)


def save_native(bilm: "BiLM", folder: Path, dtype: str = "float32") -> None:
    """Write a native folder, with the weights in one of quantize.DTYPES."""
    folder.mkdir(parents=True, exist_ok=True)
    was_native = is_native(folder)
    weights: dict[str, Tensor] = {}
    softmax: dict[str, Tensor] = {}
    for name, tensor in bilm.state_dict().items():
        part, _, rest = name.partition(".")
        target = (softmax, rest) if part == "softmax" else (weights, name)
        target[0][target[1]] = tensor.detach().cpu().contiguous()
    weights, softmax = quantize(weights, dtype), quantize(softmax, dtype)
    write_atomically(folder / WEIGHTS, lambda path: save_tensors(weights, path))
    optional = {SOFTMAX: bool(softmax), VOCAB: bilm.vocab is not None and bool(softmax)}
    optional[LEXICON] = bool(bilm.lexicon.characters or bilm.lexicon.words)
    for name, needed in optional.items():
        if was_native and not needed:
            (folder / name).unlink(missing_ok=True)  # left by another model
    if optional[SOFTMAX]:
        write_atomically(folder / SOFTMAX, lambda path: save_tensors(softmax, path))
    if optional[VOCAB]:
        write_vocab(folder / VOCAB, bilm.vocab or [])
    if optional[LEXICON]:
        write_json(folder / LEXICON, vars(bilm.lexicon))
    write_json(folder / CONFIG, _config_data(bilm))


def native_parts(bilm: "BiLM") -> dict[str, Any]:
    """Convert a model to data that msgpack can hold.

    RETURNS (dict[str, Any]): The contents of a native folder: "config", "lexicon" and
        "vocab" as JSON data, and "weights", with those of the softmax, as the bytes of
        a safetensors file.
    """
    weights = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in bilm.state_dict().items()
    }
    return {
        "config": _config_data(bilm),
        "lexicon": vars(bilm.lexicon),
        "vocab": bilm.vocab,
        "weights": save(weights),
    }


def load_native_parts(parts: dict[str, Any]) -> "BiLM":
    """Build a model from the result of native_parts."""
    where = Path("biLM")
    return build(
        _parse_config(where, parts["config"]),
        load(parts["weights"]),
        where=lambda name: where,
        lexicon=_parse_lexicon(where, parts["lexicon"]),
        vocab=parts["vocab"],
    )


def _config_data(bilm: "BiLM") -> dict[str, Any]:
    return {"format": FORMAT, "format_version": VERSION, **bilm.config.to_dict()}


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return dequantize(load_file(path))
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; expected weights") from None
    except (SafetensorError, OSError) as error:
        raise SourceError(
            f"{path}: found no whole safetensors file ({error})"
        ) from None


def _parse_config(path: Path, data: Any) -> BiLMConfig:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SourceError(
            f'{path}: found no "format": "{FORMAT}"; expected the config of '
            "a native biLM folder"
        )
    if data.get("format_version") != VERSION:
        raise SourceError(
            f"{path}: found format version {data.get('format_version')!r}; "
            f"this release of spacy-elmo reads version {VERSION}"
        )
    try:
        sections = {k: v for k, v in data.items() if not k.startswith("format")}
        return BiLMConfig.from_dict(sections)
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from None


def _parse_lexicon(path: Path, data: Any) -> Lexicon:
    parts = ("characters", "words")
    if not isinstance(data, dict) or not all(
        isinstance(data.get(part), dict)
        and all(type(row) is int and row >= 0 for row in data[part].values())
        for part in parts
    ):
        raise SourceError(f"{path}: expected 'characters' and 'words' with their rows")
    return Lexicon(**{part: data[part] for part in parts})
