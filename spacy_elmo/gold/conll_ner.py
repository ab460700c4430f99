"""Entities as a word and its tag a line: IOB, BILUO or BIOES, with sentences parted by
blank lines. spaCy's own converter of these puts the tag "-" on words that have none,
and joins sentences whose blank line has a tab in it."""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo

from .conversion import DataError, Reading, read_blocks

TAG = re.compile(r"O|[BILUES]-\S.*")
BILUO = {"E": "L", "S": "U"}  # of BIOES


def read_tagged(path: Path, reading: Reading) -> Iterator[Doc]:
    """The first column is the word, the last one its entity tag. If there are more, the
    second one is its part of speech, as in the files of CoNLL 2003.

    YIELDS (Doc): A sentence.
    """
    expected: int | None = None  # columns, as in the first line
    for block in read_blocks(path):
        rows: list[list[str]] = []
        for number, line in block:
            row = line.split("\t") if "\t" in line else line.split(" ")
            row = [column.strip() for column in row]
            if row[0] == "-DOCSTART-":
                continue
            expected = expected or max(len(row), 2)
            if len(row) != expected or not all(row):
                what = f"found {len(row)} columns {row}, expected {expected}"
                raise DataError(path, number, what)
            if not TAG.fullmatch(row[-1]):
                what = f"found the tag '{row[-1]}', expected one such as O or B-PERSON"
                raise DataError(path, number, what)
            rows.append(row)
        if rows:
            yield _make_doc(rows, reading)


def _make_doc(rows: list[list[str]], reading: Reading) -> Doc:
    words = [row[0] for row in rows]
    starts: list[bool | int | None] = [i == 0 for i in range(len(rows))]
    tags = [BILUO.get(row[-1][0], row[-1][0]) + row[-1][1:] for row in rows]
    doc = Doc(
        reading.nlp.vocab,
        words=words,
        tags=[row[1] for row in rows] if len(rows[0]) > 2 else None,
        sent_starts=starts,
    )
    reading.set_entities(doc, biluo_tags_to_spans(doc, iob_to_biluo(tags)))
    return doc
