"""Read and write the files beside the weights: JSON and vocabularies. Errors name the
file."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...files import write_atomically
from ...regular_files import check_regular, read_regular
from ..errors import SourceError
from ..lexicon import SPECIAL_WORDS

MAX_BYTES = 2**22  # the most bytes of a config; real ones have a few thousand


def check_file(path: Path, expected: str) -> int:
    """Raise SourceError if there is no regular file at a path.

    RETURNS (int): The size of the file.
    """
    try:
        check_regular(path)
        return path.stat().st_size
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; expected {expected}") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error})") from None
    except ValueError as error:
        raise SourceError(str(error)) from None


def read_bytes(path: Path, expected: str, max_bytes: int) -> bytes:
    """Read a file that may not have more than the given number of bytes."""
    check_file(path, expected)
    try:
        return read_regular(path, max_bytes)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error})") from None
    except ValueError as error:
        raise SourceError(str(error)) from None


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    contents = read_bytes(path, "a JSON file", max_bytes)
    try:
        return json.loads(contents.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: found no JSON ({error})") from None


def write_json(path: Path, data: object) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    # Halves of characters, which UTF-8 cannot hold, are escaped as JSON has it.
    contents = text.encode("utf-8", "backslashreplace")
    write_atomically(path, lambda part: part.write_bytes(contents))


def read_vocab(
    path: Path, n_words: int | None = None, max_bytes: int = 2**30
) -> list[str]:
    """Read the words of a softmax, one per line.

    n_words (int | None): The number of words the file must have; None for any.
    max_bytes (int): The largest size that the file may have.
    RETURNS (list[str]): The words, in order.
    """
    contents = read_bytes(path, "a vocabulary", max_bytes)
    try:
        text = contents.decode("utf-8-sig")
    except ValueError as error:
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
    if len(set(words)) != len(words):
        word = Counter(words).most_common(1)[0][0]
        raise SourceError(f"{path}: found {word!r} twice; expected each word once")
    return words


def vocab_bytes(path: Path, words: Sequence[str]) -> bytes:
    """Return the contents of a vocabulary.

    path (Path): The file to name in error messages.
    """
    for word in words:
        if "\n" in word or word.endswith("\r"):
            raise SourceError(f"{path}: the word {word!r} does not fit on a line")
    text = "".join(word + "\n" for word in words)
    # A word that begins with a byte order mark needs one before it, to be kept.
    return text.encode("utf-8-sig" if text.startswith("\ufeff") else "utf-8")


def write_vocab(path: Path, words: Sequence[str]) -> None:
    contents = vocab_bytes(path, words)
    write_atomically(path, lambda part: part.write_bytes(contents))
