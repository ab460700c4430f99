"""The errors that loading a model raises."""


class SourceError(ValueError):
    """Raised for a biLM source that cannot be used. The message is one sentence that
    names the file, what was found and what was expected. Characters that would break
    the line or change the terminal are escaped, because names in files may have any."""

    def __init__(self, message: str) -> None:
        super().__init__("".join(map(_escape, message)))


def _escape(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


class LexiconError(ValueError):
    """Raised for a lexicon that lacks a symbol.

    part (str): The part of the lexicon: "characters" or "words".
    symbol (str): The symbol that is missing.
    """

    def __init__(self, part: str, symbol: str) -> None:
        super().__init__(f"found no '{symbol}' among the {part}; expected it there")
        self.part = part
