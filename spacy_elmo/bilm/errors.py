"""The errors that loading a model raises."""


class SourceError(ValueError):
    """Raised for a biLM source that cannot be used. The message is one sentence that
    names the file, what was found and what was expected."""


class LexiconError(ValueError):
    """Raised for a lexicon that lacks a symbol.

    part (str): The part of the lexicon: "characters" or "words".
    symbol (str): The symbol that is missing.
    """

    def __init__(self, part: str, symbol: str) -> None:
        super().__init__(f"found no '{symbol}' among the {part}; expected it there")
        self.part = part
