"""Gold data in, what `spacy train` reads out."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, DocBin

from .conversion import DataError, Reading, load_language
from .splits import NAMES, Parts, format_of

SHARE = 10  # of so many documents one is for development, if there are no others


class Counts(NamedTuple):
    """What a part has. sentences is None if nothing says where they begin; labels are
    those of entities and the categories that hold."""

    docs: int
    sentences: int | None
    words: int
    tags: "Counter[str]"
    entities: int
    labels: "Counter[str]"


class Prepared(NamedTuple):
    counts: dict[str, Counts]
    notes: list[str]


def prepare(
    parts: Parts,
    output: Path,
    *,
    lang: str = "xx",
    sentences: int | None = None,
    limit: int | None = None,
    spans_key: str | None = None,
) -> Prepared:
    """Write output/train.spacy, dev.spacy and, if there are such files, test.spacy.

    parts (Parts): Files by "train", "dev", "test".
    sentences (int | None): How many make a doc; by default, what suits the format.
    limit (int | None): How many sentences, or texts, are read for training.
    spans_key (str | None): Where entities are stored as spans as well.
    RETURNS (Prepared): What was read, and sentences on what was changed.
    """
    if not parts.get("train"):
        raise ValueError(
            "found no file to train on; expected one with 'train' in its name, or "
            "--train FILE"
        )
    nlp, note = load_language(lang)
    reading = Reading(nlp, spans_key)
    docs = {
        part: _read_part(
            parts[part], reading, sentences, limit if part == "train" else None
        )
        for part in NAMES
        if part in parts
    }
    notes = []
    if note is not None and any(
        format_of(path).raw for paths in parts.values() for path in paths
    ):
        notes.append(note)
    notes += [f"{count:,} {what}" for what, count in reading.notes.items()]
    if "dev" not in docs:
        docs["train"], docs["dev"] = _split(docs["train"], parts["train"][0])
        notes.append(
            f"there is nothing for development: {len(docs['dev']):,} of the documents, "
            f"every {SHARE}th, were taken from those to train on"
        )
    for some in docs.values():
        for doc in some:
            for label in sorted(reading.labels):
                doc.cats.setdefault(label, 0.0)
    output.mkdir(parents=True, exist_ok=True)
    (output / "test.spacy").unlink(missing_ok=True)  # it may be of other data
    for part, some in docs.items():
        DocBin(docs=some, store_user_data=True).to_disk(output / f"{part}.spacy")
    return Prepared({part: count(some) for part, some in docs.items()}, notes)


def _read_part(
    paths: list[Path], reading: Reading, sentences: int | None, limit: int | None
) -> list[Doc]:
    docs: list[Doc] = []
    n_read = 0
    for path in paths:
        format_ = format_of(path)
        left = None if limit is None else limit - n_read
        items = list(islice(format_.read(path, reading), left))
        if not items and left != 0:
            raise DataError(path, None, "found nothing in this file")
        n_read += len(items)
        if format_.sentences is None:
            docs.extend(items)
        else:
            docs.extend(_group(items, sentences or format_.sentences))
    return docs


def _group(docs: list[Doc], size: int) -> Iterator[Doc]:
    for start in range(0, len(docs), size):
        yield Doc.from_docs(docs[start : start + size])


def _split(docs: list[Doc], path: Path) -> tuple[list[Doc], list[Doc]]:
    if len(docs) < 2:
        what = (
            "a single document cannot be parted into train and dev; give more, or "
            "--dev FILE, or fewer --sentences to a document"
        )
        raise DataError(path, None, what)
    dev = docs[SHARE - 1 :: SHARE] or docs[-1:]
    chosen = {id(doc) for doc in dev}
    return [doc for doc in docs if id(doc) not in chosen], dev


def count(docs: list[Doc]) -> Counts:
    known = all(doc.has_annotation("SENT_START") for doc in docs)
    labels: Counter[str] = Counter()
    for doc in docs:
        labels.update(ent.label_ for ent in doc.ents)
        labels.update(label for label, value in doc.cats.items() if value >= 0.5)
    return Counts(
        docs=len(docs),
        sentences=sum(len(list(doc.sents)) for doc in docs) if known else None,
        words=sum(not token.is_space for doc in docs for token in doc),
        tags=Counter(token.tag_ for doc in docs for token in doc if token.tag),
        entities=sum(len(doc.ents) for doc in docs),
        labels=labels,
    )
