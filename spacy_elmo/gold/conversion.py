"""What the readers of all kinds of gold data share."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

RULES = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}


class DataError(ValueError):
    """Data that cannot be used. The message is one sentence that names the file and,
    where there is one, the line."""

    def __init__(self, path: Path, line: int | None, what: str) -> None:
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {what}")


@dataclass
class Reading:
    """What readers need, and what they leave behind.

    nlp (Language): Its tokenizer is for raw texts.
    spans_key (str | None): Where docs get their entities a second time, with those
        that overlap.
    notes (Counter[str]): How often something was changed, by a sentence that says so.
    labels (set[str]): Of texts that have one label each.
    """

    nlp: Language
    spans_key: str | None = None
    notes: "Counter[str]" = field(default_factory=Counter)
    labels: set[str] = field(default_factory=set)

    def set_entities(self, doc: Doc, spans: Iterable[Span]) -> None:
        """Entities cannot overlap: the longest are kept."""
        distinct = list(dict.fromkeys(spans))
        kept = filter_spans(distinct)
        doc.ents = kept
        if len(distinct) > len(kept):
            note = "entities overlapped longer ones and were left out"
            self.notes[note] += len(distinct) - len(kept)
        if self.spans_key is not None:
            doc.spans[self.spans_key] = distinct


def load_language(lang: str) -> tuple[Language, str | None]:
    """RETURNS (tuple[Language, str | None]): With the language's own tokenizer, or,
    where that lacks what it is built on, with the rule tokenizer and a sentence to say
    so."""
    try:
        spacy.util.get_lang_class(lang)
    except ImportError:
        raise ValueError(
            f"--lang is '{lang}'; expected a language of spaCy, or 'xx'"
        ) from None
    try:
        nlp = spacy.blank(lang)
        nlp.make_doc("a")  # mecab is only started when it is used
    except Exception as error:  # each of these tokenizers has errors of its own
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        return spacy.blank(lang, config=RULES), (
            f"the tokenizer of '{lang}' cannot be used here ({reason}): "
            "raw texts are split by the rules of spacy.Tokenizer.v1"
        )
    return nlp, None


def read_lines(path: Path) -> list[str]:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(path, line, "this is not UTF-8") from None
    return [line.rstrip("\r") for line in text.split("\n")]


def read_blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """YIELDS (list[tuple[int, str]]): Lines up to a blank one, with their numbers."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block
