"""Make the data of a model from a config and the arrays of files. Errors name the file
that does not fit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..config import BiLMConfig
from ..data import BiLMData
from ..errors import LexiconError, SourceError
from ..lexicon import Lexicon, check_lexicon
from ..shapes import iterate_shapes
from .quantize import SCALES, dequantize


def build(
    config: BiLMConfig,
    arrays: dict[str, np.ndarray],
    *,
    where: Callable[[str], Path],
    lexicon: Lexicon,
    vocab: Sequence[str] | None = None,
) -> BiLMData:
    """Make the data of a model and check that everything fits.

    arrays (dict[str, np.ndarray]): The weights by their names in the model, float32 or
        in one of the types of quantize. Other names are ignored.
    where (Callable[[str], Path]): Returns the file to name in error messages. It is
        called with the name of an array, or with "vocab", "characters" or "words" (the
        last two are the parts of the lexicon).
    vocab (Sequence[str] | None): The words of the softmax, in order.
    """
    try:
        check_lexicon(config.encoder, lexicon)
    except LexiconError as error:
        raise SourceError(f"{where(error.part)}: {error}") from None
    n_words = config.softmax.n_words if config.softmax is not None else 0
    if vocab is not None and len(vocab) != n_words:
        raise SourceError(
            f"{where('vocab')}: found {len(vocab)} words; expected {n_words}, as the "
            "softmax has"
        )
    chosen = {}
    # Check all shapes first: no memory is allocated for a file that does not fit.
    for name, shape in iterate_shapes(config, lexicon):
        check_shape(where(name), name, arrays, shape)
        chosen[name] = arrays[name]
        if arrays[name].dtype == np.int8:
            scales = name + SCALES
            check_shape(where(name), scales, arrays, (1, *shape[1:]))
            chosen[scales] = arrays[scales]
    stored = {
        name: array
        for name, array in chosen.items()
        if array.dtype != np.float32 or name.endswith(SCALES)
    }
    plain = {}
    for name, array in chosen.items():
        if not name.endswith(SCALES):
            plain[name] = dequantize(array, chosen.get(name + SCALES))
            check_finite(where(name), name, plain[name])
    return BiLMData(config, plain, lexicon, vocab, stored)


def check_shape(path: Path, name: str, arrays: Any, shape: Any) -> None:
    """Raise SourceError, naming the file, if an array is missing or has another shape
    than the given one."""
    shape = tuple(shape)
    if name not in arrays:
        raise SourceError(
            f"{path}: found no array '{name}'; expected one of shape {shape}"
        )
    found = getattr(arrays[name], "shape", None)
    if found is None or tuple(found) != shape:
        found = "no array" if found is None else tuple(found)
        raise SourceError(f"{path}: found '{name}' to be {found}; expected {shape}")


def check_finite(path: Path, name: str, array: np.ndarray) -> None:
    """Raise SourceError if an array has a value that is not finite."""
    flat = array.reshape(-1)
    # The product is one fast pass, and finite unless a value is very large or not
    # finite itself.
    with np.errstate(all="ignore"):
        if np.isfinite(np.dot(flat, flat)) or np.isfinite(flat).all():
            return
    value = flat[~np.isfinite(flat)][0]
    raise SourceError(f"{path}: found {value} in '{name}'; expected finite weights")
