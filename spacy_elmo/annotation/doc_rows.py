"""Write chosen attributes of tokens as rows of Parquet or JSONL."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.tokens import Doc, Token

EXTENSION = "_."  # begins the names of attributes such as _.elmo_surprisal
COLUMNS = ["doc", "token", "word"]  # and a column for each attribute


def check_attributes(names: Iterable[str]) -> None:
    """Raise ValueError if tokens lack an attribute, or if a name is given twice."""
    seen = set(COLUMNS)
    for name in names:
        if name in seen:
            raise ValueError(f"found the column '{name}' twice; expected it once")
        seen.add(name)
        if name.startswith(EXTENSION):
            known = Token.has_extension(name.removeprefix(EXTENSION))
        else:
            known = name.isidentifier() and name[0] != "_" and hasattr(Token, name)
        if not known:
            raise ValueError(
                f"found the attribute '{name}', which tokens of this pipeline do not "
                "have; expected one such as lemma, pos, ent_type or _.elmo_surprisal"
            )


def make_rows(doc: Doc, number: int, names: list[str]) -> list[dict[str, Any]]:
    """Make a row for each token of a doc.

    number (int): The number of the doc in the whole input.
    names (list[str]): Attributes of tokens. Where an attribute is a number that stands
        for a string, as `lemma`, the string is stored.
    """
    return [
        dict(
            zip(
                [*COLUMNS, *names],
                [number, token.i, token.text, *(_get(token, name) for name in names)],
            )
        )
        for token in doc
    ]


def write_rows(rows: list[dict[str, Any]], path: Path, kind: str) -> None:
    """Write rows as "parquet" or "jsonl"."""
    if kind == "jsonl":
        srsly.write_jsonl(path, rows)
        return
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), path)


def _get(token: Token, name: str) -> Any:
    """Return an attribute in a form that Parquet and JSON can hold."""
    if name.startswith(EXTENSION):
        value = token._.get(name.removeprefix(EXTENSION))
    else:
        value = getattr(token, name + "_" if hasattr(token, name + "_") else name)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str | int | float | list | None):
        return value
    return str(value)
