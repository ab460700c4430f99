class SourceError(ValueError):
    """A biLM source that cannot be used. The message is one sentence that names the
    file, what was found and what was expected."""
