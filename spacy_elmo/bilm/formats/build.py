"""Build models from a config and named tensors. Errors name the file that does not
fit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from ..config import BiLMConfig
from ..encoders import Lexicon
from ..errors import LexiconError, SourceError
from ..model import BiLM


def build(
    config: BiLMConfig,
    tensors: dict[str, Tensor],
    *,
    where: Callable[[str], Path],
    lexicon: Lexicon,
    vocab: Sequence[str] | None = None,
) -> BiLM:
    """Build a model with given weights.

    tensors (dict[str, Tensor]): The weights by their names in the model. Other names
        are ignored.
    where (Callable[[str], Path]): Returns the file to name in error messages. It is
        called with the name of a tensor, or with "config", "characters" or "words" (the
        last two are the parts of the lexicon).
    vocab (Sequence[str] | None): The words of the softmax, in order.
    RETURNS (BiLM): The model, in evaluation mode.
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
    """Construct a model with uninitialized weights; arguments as for build."""
    try:
        return BiLM(config, lexicon=lexicon, vocab=vocab, initialize=False)
    except LexiconError as error:
        raise SourceError(f"{where(error.part)}: {error}") from None
    except (ValueError, RuntimeError) as error:  # wrong values, or not enough memory
        reason = str(error).split("\n")[0]
        raise SourceError(f"{where('config')}: {reason}") from None


def check_shape(path: Path, name: str, arrays: Any, shape: Any) -> None:
    """Raise SourceError, naming the file, if an array is missing or has another shape
    than the given one."""
    shape = tuple(shape)
    if name not in arrays:
        raise SourceError(f"{path}: found no array '{name}'; expected one of {shape}")
    found = getattr(arrays[name], "shape", None)
    if found is None or tuple(found) != shape:
        found = "no array" if found is None else tuple(found)
        raise SourceError(f"{path}: found '{name}' to be {found}; expected {shape}")
