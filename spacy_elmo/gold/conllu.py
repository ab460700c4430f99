"""Read CoNLL-U files, as rows or as docs.

Docs are made by spaCy's own converter. It accepts heads that form a cycle, and it
misreads missing lemmas and tags, and multiword tokens such as "don't". So the rows are
checked and corrected first.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.training.converters.conllu_to_docs import conllu_sentence_to_doc

from .conversion import Conversion
from .line_files import DataError, read_blocks

N_COLUMNS = 10
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(N_COLUMNS)
ENTITY = r"^((?:name|NE)=)([BILU])-(.+)$"  # spaCy's converter expects these groups
FEATURES = re.compile(r"_|[^=|]+=[^=|]+(\|[^=|]+=[^=|]+)*")

Row = tuple[int, list[str]]  # a line number, and the columns of that line


def read_conllu_rows(path: Path) -> Iterator[list[Row]]:
    """Yield the rows of each sentence, without comment lines.

    Rows with IDs such as 3-4 (a multiword token) and 3.1 (an empty node) are included.
    """
    for block in read_blocks(path):
        lines = [(number, line) for number, line in block if not line.startswith("#")]
        if lines:
            yield [
                (number, _split_columns(path, number, line)) for number, line in lines
            ]


def _split_columns(path: Path, number: int, line: str) -> list[str]:
    columns = line.split("\t")
    if len(columns) != N_COLUMNS:
        problem = (
            f"found {len(columns)} columns; expected CoNLL-U, which has {N_COLUMNS} "
            "separated by tabs"
        )
        raise DataError(path, number, problem)
    if not re.fullmatch(r"\d{1,9}([-.]\d{1,9})?", columns[ID]):
        problem = f"found ID '{columns[ID][:99]}'; expected a number"
        raise DataError(path, number, problem)
    return columns


def read_conllu(path: Path, conversion: Conversion) -> Iterator[Doc]:
    """Read each sentence as a doc.

    Entities are taken from the column MISC, which contains items such as NE=B-LABEL.
    If the whole file contains no entities, they stay unset.
    """
    sentences = list(read_conllu_rows(path))
    has_entities = any(
        re.search(r"(^|\|)(name|NE)=", columns[MISC])
        for rows in sentences
        for _, columns in rows
    )
    for rows in sentences:
        lines = _correct_rows(path, rows)
        n_merged = sum("-" in columns[ID] for columns in lines)
        if n_merged:
            change = "multiword tokens differ from their words, which were merged"
            conversion.changes[change] += n_merged
        try:
            doc = conllu_sentence_to_doc(
                conversion.nlp.vocab,
                ["\t".join(columns) for columns in lines],
                ENTITY,
                merge_subtokens=True,
                set_ents=has_entities,
            )
        except (ValueError, KeyError) as error:
            reason = str(error).split("\n")[0]
            problem = f"spaCy cannot convert this sentence: {reason}"
            raise DataError(path, rows[0][0], problem) from None
        if has_entities:
            conversion.set_entities(doc, doc.ents)
        yield doc


def _correct_rows(path: Path, rows: list[Row]) -> list[list[str]]:
    """Check a sentence, and return its columns in a form that spaCy's converter
    understands."""
    for number, columns in rows:
        _correct_columns(path, number, columns)
    words = [(number, columns) for number, columns in rows if columns[ID].isdecimal()]
    _check_tree(path, rows[0][0], words)
    kept = []
    for number, columns in rows:
        if "-" not in columns[ID]:
            kept.append(columns)
            continue
        first, last = map(int, columns[ID].split("-"))
        if not 0 < first <= last <= len(words):
            problem = f"found the range {columns[ID]}; expected IDs of this sentence"
            raise DataError(path, number, problem)
        parts = [columns for _, columns in words[first - 1 : last]]
        if "".join(part[FORM] for part in parts) != columns[FORM]:
            kept.append(columns)
            continue
        # Tokenizers also split tokens such as "don't", so keep the words "do" and
        # "n't", without a space between them, and drop the row of the whole token.
        for part in parts:
            part[MISC] = _add_no_space(part[MISC])
        if "SpaceAfter=No" not in columns[MISC].split("|"):
            parts[-1][MISC] = _remove(parts[-1][MISC], "SpaceAfter=No")
    return kept


def _correct_columns(path: Path, number: int, columns: list[str]) -> None:
    if not FEATURES.fullmatch(columns[FEATS]):
        problem = f"found FEATS '{columns[FEATS]}'; expected Name=Value|Name=Value or _"
        raise DataError(path, number, problem)
    # An underscore means that a value is missing, unless the word itself is "_".
    if columns[LEMMA] == "_" and columns[FORM] != "_":
        columns[LEMMA] = ""
    if columns[UPOS] == columns[XPOS] == "_":
        columns[XPOS] = ""
    if columns[DEPREL] == "_":
        columns[DEPREL] = ""
    # spaCy searches the whole column for "SpaceAfter=No", and would also find it in
    # "CorrectSpaceAfter=No".
    columns[MISC] = _remove(columns[MISC], "CorrectSpaceAfter=No")


def _check_tree(path: Path, start: int, words: list[Row]) -> None:
    """Raise DataError unless the words form a tree.

    start (int): The line on which the sentence begins.
    """
    for i, (number, columns) in enumerate(words, start=1):
        if int(columns[ID]) != i:
            raise DataError(path, number, f"found ID {columns[ID]}; expected {i}")
        head = columns[HEAD]
        # Python refuses to convert very long numbers.
        if not head.isdecimal() or len(head) > 9 or int(head) > len(words):
            problem = f"found HEAD '{head[:99]}'; expected a number up to {len(words)}"
            raise DataError(path, number, problem)
    heads = [int(columns[HEAD]) for _, columns in words]
    if heads.count(0) != 1:
        problem = f"found {heads.count(0)} words with HEAD 0; expected one per sentence"
        raise DataError(path, start, problem)
    for i, (number, _) in enumerate(words, start=1):
        for _ in heads:
            i = heads[i - 1] if i else 0
        if i:
            problem = "found heads that form a cycle from here on; expected a tree"
            raise DataError(path, number, problem)


def _remove(misc: str, item: str) -> str:
    return "|".join(x for x in misc.split("|") if x != item) or "_"


def _add_no_space(misc: str) -> str:
    return "SpaceAfter=No" if misc == "_" else f"{misc}|SpaceAfter=No"
