"""CoNLL-U, by spaCy's own converter. Checked before it, since it takes heads in a
circle for a tree, and put right where it would misread: a lemma or tag that is missing,
a range of words that do not spell what is written."""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.training.converters.conllu_to_docs import conllu_sentence_to_doc

from .conversion import DataError, Reading, read_blocks

N_COLUMNS = 10
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(N_COLUMNS)
ENTITY = r"^((?:name|NE)=)([BILU])-(.+)$"  # its groups are those spaCy looks for
FEATURES = re.compile(r"_|[^=|]+=[^=|]+(\|[^=|]+=[^=|]+)*")
Row = list[str]


def read_conllu(path: Path, reading: Reading) -> Iterator[Doc]:
    """YIELDS (Doc): A sentence. Entities are read from MISC, NE=B-LABEL and so on; they
    are unset if the file has none."""
    blocks = [
        [(number, line) for number, line in block if not line.startswith("#")]
        for block in read_blocks(path)
    ]
    has_entities = any(
        re.search(r"[\t|](name|NE)=", line) for block in blocks for _, line in block
    )
    for block in blocks:
        if not block:
            continue  # comments alone
        rows = _read_rows(path, block)
        merged = sum("-" in row[ID] for row in rows)
        if merged:
            note = "words stand for several that spell them otherwise, and were merged"
            reading.notes[note] += merged
        try:
            doc = conllu_sentence_to_doc(
                reading.nlp.vocab,
                ["\t".join(row) for row in rows],
                ENTITY,
                merge_subtokens=True,
                set_ents=has_entities,
            )
        except (ValueError, KeyError) as error:
            reason = str(error).split("\n")[0]
            what = f"spaCy cannot read this sentence: {reason}"
            raise DataError(path, block[0][0], what) from None
        if has_entities:
            reading.set_entities(doc, doc.ents)
        yield doc


def _read_rows(path: Path, block: list[tuple[int, str]]) -> list[Row]:
    """A sentence as spaCy's converter should see it."""
    rows = [_read_columns(path, number, line) for number, line in block]
    words = [row for row in rows if row[ID].isdecimal()]
    numbers = [n for (n, _), row in zip(block, rows) if row[ID].isdecimal()]
    _check_tree(path, block[0][0], numbers, words)
    kept = []
    for (number, _), row in zip(block, rows):
        if "-" not in row[ID]:
            kept.append(row)
            continue
        first, last = map(int, row[ID].split("-"))
        if not 0 < first <= last <= len(words):
            raise DataError(path, number, f"found no words for the range {row[ID]}")
        parts = words[first - 1 : last]
        if "".join(part[FORM] for part in parts) != row[FORM]:
            kept.append(row)
            continue
        # Such as "don't", which tokenizers part as well: the words stay, and have the
        # spaces of what is written.
        for part in parts:
            part[MISC] = _with_no_space(part[MISC])
        if "SpaceAfter=No" not in row[MISC].split("|"):
            parts[-1][MISC] = _without(parts[-1][MISC], "SpaceAfter=No")
    return kept


def _read_columns(path: Path, number: int, line: str) -> Row:
    row = line.split("\t")
    if len(row) != N_COLUMNS:
        what = f"found {len(row)} columns, expected {N_COLUMNS} parted by tabs"
        raise DataError(path, number, what)
    if not re.fullmatch(r"\d+([-.]\d+)?", row[ID]):
        raise DataError(path, number, f"found ID '{row[ID]}', expected a number")
    if not FEATURES.fullmatch(row[FEATS]):
        what = f"found FEATS '{row[FEATS]}', expected Name=Value|Name=Value or _"
        raise DataError(path, number, what)
    # An underscore is what is missing, unless it is the word.
    if row[LEMMA] == "_" and row[FORM] != "_":
        row[LEMMA] = ""
    if row[UPOS] == row[XPOS] == "_":
        row[XPOS] = ""
    if row[DEPREL] == "_":
        row[DEPREL] = ""
    # In this, spaCy would see SpaceAfter=No.
    row[MISC] = _without(row[MISC], "CorrectSpaceAfter=No")
    return row


def _check_tree(path: Path, start: int, numbers: list[int], words: list[Row]) -> None:
    """start (int): The line on which the sentence begins.
    numbers (list[int]): Those of its words."""
    for i, (number, row) in enumerate(zip(numbers, words), start=1):
        if int(row[ID]) != i:
            raise DataError(path, number, f"found ID {row[ID]}, expected {i}")
        if not row[HEAD].isdecimal() or int(row[HEAD]) > len(words):
            what = f"found HEAD '{row[HEAD]}', expected a number up to {len(words)}"
            raise DataError(path, number, what)
    heads = [int(row[HEAD]) for row in words]
    if heads.count(0) != 1:
        what = f"found {heads.count(0)} words with HEAD 0, expected one in a sentence"
        raise DataError(path, start, what)
    for number, place in zip(numbers, range(1, len(heads) + 1)):
        for _ in heads:
            place = heads[place - 1] if place else 0
        if place:
            raise DataError(path, number, "the heads from here on go in a circle")


def _without(misc: str, item: str) -> str:
    return "|".join(x for x in misc.split("|") if x != item) or "_"


def _with_no_space(misc: str) -> str:
    return "SpaceAfter=No" if misc == "_" else f"{misc}|SpaceAfter=No"
