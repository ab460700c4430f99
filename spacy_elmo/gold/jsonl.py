"""Read JSONL files: one text per line, with entities as character offsets, or with
categories."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import get_words_and_spaces

from ..text.json_lines import parse_json
from .conversion import Conversion
from .line_files import DataError, read_lines

SPAN_KEYS = ("spans", "entities", "ents")
LABEL_KEYS = ("cats", "label")
Record = dict[str, Any]


def read_jsonl(path: Path, conversion: Conversion) -> Iterator[Doc]:
    """Read each text as a doc. A line is one of:

    {"text": ..., "spans": [[start, end, label], ...]}; a span may also be written as
        {"start": ..., "end": ..., "label": ...}. The key may also be "entities" or
        "ents", but only one of them may have a value. Null is ignored.
    {"text": ..., "cats": {label: value from 0 to 1, ...}}
    {"text": ..., "label": ...}
    """
    for number, line in read_lines(path):
        if line.strip():
            try:
                yield _make_doc(_parse_record(line), conversion)
            except (ValueError, RecursionError) as error:
                raise DataError(path, number, f"{error}") from None


def _parse_record(line: str) -> Record:
    try:
        record = parse_json(line)
    except (ValueError, RecursionError):
        raise ValueError("this is not JSON") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise ValueError('found no text; expected {"text": ...}')
    if not record["text"].strip():
        raise ValueError("found an empty text; expected words")
    for key in SPAN_KEYS:
        if key in record and record[key] is None:
            del record[key]
    for keys in (SPAN_KEYS, LABEL_KEYS):
        _choose_key(record, keys)
    if not {*SPAN_KEYS, *LABEL_KEYS} & set(record):
        raise ValueError(
            f"found {sorted(record)}; expected "
            '"spans", "cats" or "label" beside the text'
        )
    _check_unicode([record.get(key) for key in ("text", *SPAN_KEYS, *LABEL_KEYS)])
    return record


def _choose_key(record: Record, keys: Iterable[str]) -> None:
    """Delete empty values of a line that has one of these keys with a value, as files
    with the same keys in all lines have. Raise ValueError if several have one."""
    full = [key for key in keys if record.get(key) not in (None, [], {})]
    if len(full) > 1:
        raise ValueError(f"found {' and '.join(full)}; expected one of them")
    for key in keys:
        if full and key in record and key not in full:
            del record[key]


def _check_unicode(values: list[Any]) -> None:
    """Raise ValueError if there is a lone surrogate, which spaCy cannot store."""
    try:
        json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("found half a character; expected valid Unicode") from None


def _make_doc(record: Record, conversion: Conversion) -> Doc:
    doc = _tokenize(conversion.nlp, record["text"])
    for key in SPAN_KEYS:
        if key in record:
            items = record[key]
            if not isinstance(items, list):
                raise ValueError(f"found {key} {items!r}; expected a list of spans")
            spans = [_make_span(doc, item, conversion) for item in items]
            conversion.set_entities(doc, spans)
            break
    if "cats" in record:
        cats = record["cats"]
        if not isinstance(cats, dict) or not all(map(_is_from_0_to_1, cats.values())):
            raise ValueError(
                f'found cats {cats}; expected {{"label": value from 0 to 1, ...}}'
            )
        doc.cats = {label: float(value) for label, value in cats.items()}
    elif "label" in record:
        label = record["label"]
        if not isinstance(label, (str, int)) or label == "":
            raise ValueError(f"found the label {label!r}; expected a word or a number")
        doc.cats = {str(label): 1.0}
        conversion.labels.add(str(label))
    return doc


def _is_from_0_to_1(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _tokenize(nlp: Language, text: str) -> Doc:
    """Return a doc that has words and spaces, but no annotations.

    Some tokenizers also set tags, but these are not gold data. Some drop spaces, which
    would shift the character offsets; such spaces are restored.
    """
    tokenized = nlp.make_doc(text)
    words = [token.text for token in tokenized]
    spaces = [bool(token.whitespace_) for token in tokenized]
    if tokenized.text != text:
        words, spaces = get_words_and_spaces(words, text)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _make_span(doc: Doc, item: Any, conversion: Conversion) -> Span:
    start, end, label = _parse_span(item)
    text = doc.text
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise ValueError(f"found the span {item}, which contains no word of this text")
    # Leave out spaces at both ends.
    start = end - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    span = doc.char_span(start, end, label=label, alignment_mode="expand")
    assert span is not None
    if span.start_char != start or span.end_char != end:
        change = "entities began or ended inside a token and were extended to all of it"
        conversion.changes[change] += 1
    return span


def _parse_span(item: Any) -> tuple[int, int, str]:
    values: list[Any] = (
        [item.get(key) for key in ("start", "end", "label")]
        if isinstance(item, dict)
        else item
    )
    kinds = [type(value) for value in values] if isinstance(values, list) else []
    if kinds != [int, int, str] or not values[2]:
        raise ValueError(f"found the span {item}; expected [start, end, label]")
    return values[0], values[1], values[2]
