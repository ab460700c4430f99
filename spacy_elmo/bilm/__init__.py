"""The biLM. It uses torch and imports neither spaCy nor Thinc."""

from .config import (
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)
from .encoders import Lexicon
from .errors import SourceError
from .formats.sources import load_bilm
from .model import Batch, BiLM, Output
from .state import State

__all__ = [
    "Batch",
    "BiLM",
    "BiLMConfig",
    "BytesConfig",
    "CharsConfig",
    "LSTMConfig",
    "Lexicon",
    "Output",
    "SoftmaxConfig",
    "SourceError",
    "State",
    "WordsConfig",
    "load_bilm",
]
