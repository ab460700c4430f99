"""Say which extra of this package installs a module that is missing."""

from importlib import import_module


def require(module: str, extra: str) -> None:
    """Raise ValueError if a module is not installed.

    extra (str): The extra of this package that installs it.
    """
    try:
        import_module(module)
    except ImportError:
        raise ValueError(
            f"this needs {module}: pip install 'spacy-elmo[{extra}]'"
        ) from None
