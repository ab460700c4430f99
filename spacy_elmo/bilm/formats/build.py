"""Small files around the weights, read with errors that name them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from ...files import write_atomically
from ..config import BiLMConfig
from ..encoders import Lexicon, WordEncoder
from ..errors import LexiconError, SourceError
from ..model import BiLM


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; expected a JSON file") from None
    except (ValueError, OSError, RecursionError) as error:
        raise SourceError(f"{path}: found no JSON ({error})") from None


def read_vocab(path: Path, n_words: int | None = None) -> list[str]:
    """RETURNS (list[str]): The words of a softmax, one a line; n_words of them, if that
    is given."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (ValueError, OSError) as error:
        raise SourceError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    words = [line.rstrip("\r") for line in text.split("\n")]
    if words and not words[-1]:
        words.pop()
    if n_words is not None and len(words) != n_words:
        raise SourceError(
            f"{path}: found {len(words)} words; expected {n_words}, as the softmax has"
        )
    missing = [word for word in WordEncoder.SPECIAL if word not in words]
    if missing:
        raise SourceError(f"{path}: found no {missing[0]}; expected it among the words")
    return words


def write_vocab(path: Path, words: Sequence[str]) -> None:
    for word in words:
        if "\n" in word or word.endswith("\r"):
            raise SourceError(f"{path}: the word {word!r} does not fit on a line")
    text = "".join(word + "\n" for word in words)
    write_atomically(path, lambda part: part.write_bytes(text.encode("utf-8")))


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # which is no OSError, though the disk may be full
        raise OSError(f"{path}: cannot be written ({error})") from None


def build(
    config: BiLMConfig,
    tensors: dict[str, Tensor],
    *,
    where: Callable[[str], Path],
    lexicon: Lexicon,
    vocab: Sequence[str] | None = None,
) -> BiLM:
    """Make a model of given weights.

    tensors (dict[str, Tensor]): By the model's own names; more are passed over.
    where (Callable[[str], Path]): The file that a tensor, the "characters" or the
        "words" of the lexicon come from, for errors.
    """
    bilm = construct(config, where=where, lexicon=lexicon, vocab=vocab)
    expected = bilm.state_dict()
    for name, tensor in expected.items():
        check_shape(where(name), name, tensors, tuple(tensor.shape))
    chosen = {name: tensors[name].float() for name in expected}
    bilm.load_state_dict(chosen, assign=True)
    return bilm.eval()


def construct(
    config: BiLMConfig,
    *,
    where: Callable[[str], Path],
    lexicon: Lexicon | None = None,
    vocab: Sequence[str] | None = None,
) -> BiLM:
    """RETURNS (BiLM): A model whose weights are yet to be loaded."""
    try:
        return BiLM(config, lexicon=lexicon, vocab=vocab, initialize=False)
    except LexiconError as error:
        raise SourceError(f"{where(error.part)}: {error}") from None
    except (ValueError, RuntimeError) as error:  # wrong, or larger than the memory
        reason = str(error).split("\n")[0]
        raise SourceError(f"{where('config')}: {reason}") from None


def check_shape(path: Path, name: str, arrays: Any, shape: Any) -> None:
    """One sentence if an array is not there or has another shape."""
    shape = tuple(shape)
    if name not in arrays:
        raise SourceError(f"{path}: found no array '{name}'; expected one of {shape}")
    found = getattr(arrays[name], "shape", None)
    if found is None or tuple(found) != shape:
        found = "no array" if found is None else tuple(found)
        raise SourceError(f"{path}: found '{name}' to be {found}; expected {shape}")
