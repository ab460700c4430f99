class SourceError(ValueError):
    """A biLM source that cannot be used. The message is one sentence that names the
    file, what was found and what was expected."""


class LexiconError(ValueError):
    """A lexicon that lacks a symbol. part: "characters" or "words"."""

    def __init__(self, part: str, symbol: str) -> None:
        super().__init__(f"found no '{symbol}' among the {part}; expected it there")
        self.part = part
