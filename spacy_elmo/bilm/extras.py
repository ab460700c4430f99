"""Tell whether torch is installed, and say which extra brings it."""

from importlib.util import find_spec

INSTALL_TORCH = "pip install 'spacy-elmo[train]'"


class TorchError(ValueError):
    """Raised where torch is needed and not installed."""


def has_torch() -> bool:
    """Return whether torch is installed, without importing it."""
    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):
        return False


def require_torch(what: str) -> None:
    """Raise TorchError if torch is not installed.

    what (str): What needs it, as the beginning of a sentence.
    """
    if not has_torch():
        raise needs_torch(what)


def needs_torch(what: str) -> TorchError:
    return TorchError(f"{what} needs torch: {INSTALL_TORCH}")
