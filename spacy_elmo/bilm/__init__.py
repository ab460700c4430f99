"""The biLM. It imports neither spaCy nor Thinc, and torch only for the names that need
it, when they are first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .bilm_base import BiLMBase
from .config import (
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)
from .data import BiLMData
from .errors import SourceError
from .formats.sources import load_bilm, load_data
from .lexicon import Lexicon
from .numpy_model import NumpyBiLM
from .state import State

if TYPE_CHECKING:
    from .model import Batch, BiLM, Output

__all__ = [
    "Batch",
    "BiLM",
    "BiLMBase",
    "BiLMConfig",
    "BiLMData",
    "BytesConfig",
    "CharsConfig",
    "LSTMConfig",
    "Lexicon",
    "NumpyBiLM",
    "Output",
    "SoftmaxConfig",
    "SourceError",
    "State",
    "WordsConfig",
    "load_bilm",
    "load_data",
]

NEED_TORCH = {"Batch": "model", "BiLM": "model", "Output": "model"}


def __getattr__(name: str) -> Any:
    if name in NEED_TORCH:
        return getattr(import_module(f".{NEED_TORCH[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
