"""A text a line, as JSON, with entities as spans of characters, or categories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import get_words_and_spaces

from .conversion import DataError, Reading, read_lines

SPANS = ("spans", "entities", "ents")
Record = dict[str, Any]


def read_jsonl(path: Path, reading: Reading) -> Iterator[Doc]:
    """{"text", "spans": [[start, end, label]]}, where a span may also be {"start",
    "end", "label"}; {"text", "cats": {label: value}}; {"text", "label"}. Spans
    that are null count as not there.

    YIELDS (Doc): A text.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield _make_doc(_read_record(line), reading)
            except ValueError as error:
                raise DataError(path, number, f"{error}") from None


def _read_record(line: str) -> Record:
    try:
        record = srsly.json_loads(line)
    except ValueError:
        raise ValueError("this is not JSON") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise ValueError('found no text, expected {"text": ...}')
    if not record["text"].strip():
        raise ValueError("found an empty text")
    for key in SPANS:
        if key in record and record[key] is None:
            del record[key]
    if not {*SPANS, "cats", "label"} & set(record):
        raise ValueError(
            f'found {sorted(record)}, expected "spans", "cats" or "label" with the text'
        )
    return record


def _make_doc(record: Record, reading: Reading) -> Doc:
    doc = _tokenize(reading.nlp, record["text"])
    for key in SPANS:
        if key in record:
            items = record[key]
            if not isinstance(items, list):
                raise ValueError(f"found {key} {items!r}, expected a list of spans")
            spans = [_make_span(doc, item, reading) for item in items]
            reading.set_entities(doc, spans)
            break
    if "cats" in record:
        cats = record["cats"]
        if not isinstance(cats, dict) or not all(map(_is_share, cats.values())):
            raise ValueError(f'found cats {cats}, expected {{"label": 0 to 1, ...}}')
        doc.cats = {label: float(value) for label, value in cats.items()}
    elif "label" in record:
        label = record["label"]
        if not isinstance(label, (str, int)) or label == "":
            raise ValueError(f"found the label {label!r}, expected a word or a number")
        doc.cats = {str(label): 1.0}
        reading.labels.add(str(label))
    return doc


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _tokenize(nlp: Language, text: str) -> Doc:
    """Words and spaces only: a tokenizer may add tags of its own, which are not gold,
    and may drop spaces, which would shift the spans."""
    made = nlp.make_doc(text)
    words = [token.text for token in made]
    spaces = [bool(token.whitespace_) for token in made]
    if made.text != text:
        words, spaces = get_words_and_spaces(words, text)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _make_span(doc: Doc, item: Any, reading: Reading) -> Span:
    start, end, label = _read_span(item)
    text = doc.text
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise ValueError(f"found the span {item}, which has no word in this text")
    # Spaces at its ends are no part of a name.
    start = end - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    span = doc.char_span(start, end, label=label, alignment_mode="expand")
    assert span is not None
    if span.start_char != start or span.end_char != end:
        reading.notes["entities ended inside of a token and were widened to it"] += 1
    return span


def _read_span(item: Any) -> tuple[int, int, str]:
    values: list[Any] = (
        [item.get(key) for key in ("start", "end", "label")]
        if isinstance(item, dict)
        else item
    )
    if not isinstance(values, list) or [type(x) for x in values] != [int, int, str]:
        raise ValueError(f"found the span {item}, expected [start, end, label]")
    return values[0], values[1], values[2]
