"""Read files with one word and its entity tag (IOB, BILUO or BIOES) per line, and blank
lines between sentences.

spaCy's own converter is not used: it gives the tag "-" to words without a part of
speech, and it joins two sentences if the blank line between them contains a tab.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo

from .conversion import Conversion
from .line_files import DataError, read_blocks

TAG = re.compile(r"O|[BILUES]-\S.*")
BIOES_TO_BILUO = {"E": "L", "S": "U"}


def read_conll_ner(path: Path, conversion: Conversion) -> Iterator[Doc]:
    """Read each sentence as a doc.

    The first column is the word, the last one its entity tag. If there are more
    columns, the second one is the part of speech, as in the files of CoNLL 2003.
    """
    n_columns: int | None = None  # in the first line; all others must have as many
    for block in read_blocks(path):
        rows: list[list[str]] = []
        for number, line in block:
            row = line.split("\t") if "\t" in line else line.split(" ")
            row = [column.strip() for column in row]
            if row[0] == "-DOCSTART-":
                continue
            n_columns = n_columns or max(len(row), 2)
            if len(row) != n_columns or not all(row):
                problem = f"found {len(row)} columns {row}; expected {n_columns}"
                raise DataError(path, number, problem)
            if not TAG.fullmatch(row[-1]):
                problem = (
                    f"found the tag '{row[-1]}'; expected a tag like O or B-PERSON"
                )
                raise DataError(path, number, problem)
            rows.append(row)
        if rows:
            yield _make_doc(rows, conversion)


def _make_doc(rows: list[list[str]], conversion: Conversion) -> Doc:
    words = [row[0] for row in rows]
    starts: list[bool | int | None] = [i == 0 for i in range(len(rows))]
    tags = [BIOES_TO_BILUO.get(row[-1][0], row[-1][0]) + row[-1][1:] for row in rows]
    doc = Doc(
        conversion.nlp.vocab,
        words=words,
        tags=[row[1] for row in rows] if len(rows[0]) > 2 else None,
        sent_starts=starts,
    )
    conversion.set_entities(doc, biluo_tags_to_spans(doc, iob_to_biluo(tags)))
    return doc
