"""ELMo for spaCy: contextual word vectors from a bidirectional language model.

Names that need torch or spaCy are imported when they are first used.
"""

from importlib import import_module
from typing import Any

from .about import __version__

__all__ = ["BiLM", "Neighbors", "__version__", "load_bilm", "show"]

# The module in which each name is defined; None if the name is itself a module.
_MODULES = {
    "BiLM": ".bilm",
    "Neighbors": ".analysis.neighbor_index",
    "load_bilm": ".bilm",
    "show": None,
}


def __getattr__(name: str) -> Any:
    # Every spaCy command imports this package, and importing torch would slow it down.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module is None:
        return import_module(f".{name}", __name__)
    return getattr(import_module(module, __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
