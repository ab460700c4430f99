"""ELMo for spaCy: contextual word vectors from a bidirectional language model."""

from typing import Any

from .about import __version__

__all__ = ["BiLM", "__version__", "load_bilm"]


def __getattr__(name: str) -> Any:
    # Every spaCy command imports this package, and importing torch would slow it down.
    if name in ("BiLM", "load_bilm"):
        from . import bilm

        return getattr(bilm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
