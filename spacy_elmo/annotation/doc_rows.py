"""Write chosen attributes of tokens as rows of Parquet or JSONL."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc, MorphAnalysis, Span, Token
from spacy.vocab import Vocab

EXTENSION = "_."  # begins the names of attributes such as _.elmo_surprisal
COLUMNS = ["doc", "token", "word"]  # and a column for each attribute
OBJECTS = (Token, Span, Doc, MorphAnalysis)  # are stored as their text


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
            known = known and not callable(getattr(Token, name))  # it is a method
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


def write_rows(
    rows: list[dict[str, Any]], names: list[str], path: Path, kind: str
) -> None:
    """Write rows as "parquet" or "jsonl". Raise ValueError if an attribute has values
    that the format cannot hold.

    names (list[str]): The attributes, which are columns even if there are no rows.
    """
    columns = {name: [row[name] for row in rows] for name in [*COLUMNS, *names]}
    if kind == "jsonl":
        _write_json_lines(columns, path)
    else:
        _write_parquet(columns, path)


def _write_json_lines(columns: dict[str, list[Any]], path: Path) -> None:
    cells = []
    for name, values in columns.items():
        with _explain(name):
            texts = [json.dumps(v, ensure_ascii=False, allow_nan=False) for v in values]
        cells.append([f"{json.dumps(name)}: {text}" for text in texts])
    # Halves of characters, which UTF-8 cannot hold, are escaped as JSON has it.
    with path.open("w", encoding="utf8", errors="backslashreplace") as file:
        file.writelines("{" + ", ".join(row) + "}\n" for row in zip(*cells))


def _write_parquet(columns: dict[str, list[Any]], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {}
    for name, values in columns.items():
        with _explain(name):
            array = pa.array(values)
            if pa.types.is_null(array.type):  # other parts of the text have values
                array = array.cast(pa.array([_example(name)]).type)
            arrays[name] = array
    parquet.write_table(pa.table(arrays), path)


def _example(name: str) -> Any:
    """Return a value of the type that a column should have if it has no values."""
    if name.startswith(EXTENSION):
        default = Token.get_extension(name.removeprefix(EXTENSION))[0]
        usual = [0.0] if name.startswith("_.elmo") else 0.0  # our own are vectors
        return usual if default is None else default
    token = Doc(Vocab(), words=["a"])[0]
    row = {**dict.fromkeys(COLUMNS, 0), "word": "a"}
    value = row[name] if name in row else _get(token, name)
    return False if value is None else value  # such as is_sent_start


def _get(token: Token, name: str) -> Any:
    """Return an attribute in a form that Parquet and JSON can hold."""
    with _explain(name):
        if name.startswith(EXTENSION):
            value = token._.get(name.removeprefix(EXTENSION))
        else:
            value = getattr(token, name + "_" if hasattr(token, name + "_") else name)
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, tuple):
            return [str(item) if isinstance(item, OBJECTS) else item for item in value]
        if isinstance(value, OBJECTS):
            return str(value)
        if isinstance(value, str | int | float | list | None):
            return value
        raise TypeError(f"found {type(value).__name__}")


@contextmanager
def _explain(name: str) -> Iterator[None]:
    """Raise ValueError with one sentence about the attribute if anything fails in the
    block. spaCy, extensions and Arrow raise many kinds of errors."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"found the attribute '{name}' to have values that cannot be stored "
            f"({reason}); expected numbers, strings or lists of them"
        ) from None
