"""Read and write the files beside the weights: JSON and vocabularies. Errors name the
file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...files import write_atomically
from ...regular_files import read_regular
from ..errors import SourceError
from ..lexicon import SPECIAL_WORDS


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; expected a JSON file") from None
    except (ValueError, OSError, RecursionError) as error:
        raise SourceError(f"{path}: found no JSON ({error})") from None


def write_json(path: Path, data: object) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, lambda part: part.write_bytes(text.encode("utf-8")))


def read_vocab(path: Path, n_words: int | None = None) -> list[str]:
    """Read the words of a softmax, one per line.

    n_words (int | None): The number of words the file must have; None for any.
    RETURNS (list[str]): The words, in order.
    """
    try:
        text = read_regular(path).decode("utf-8")
    except (ValueError, OSError) as error:
        raise SourceError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    words = [line.rstrip("\r") for line in text.split("\n")]
    if words and not words[-1]:
        words.pop()
    if n_words is not None and len(words) != n_words:
        raise SourceError(
            f"{path}: found {len(words)} words; expected {n_words}, as the softmax has"
        )
    missing = [word for word in SPECIAL_WORDS if word not in words]
    if missing:
        raise SourceError(f"{path}: found no {missing[0]}; expected it among the words")
    return words


def write_vocab(path: Path, words: Sequence[str]) -> None:
    for word in words:
        if "\n" in word or word.endswith("\r"):
            raise SourceError(f"{path}: the word {word!r} does not fit on a line")
    text = "".join(word + "\n" for word in words)
    write_atomically(path, lambda part: part.write_bytes(text.encode("utf-8")))
