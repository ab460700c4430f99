"""Divide an input into parts, which depend on nothing but the input, and make them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..files import write_atomically
from ..fingerprints import checksum_file, fingerprint_data

# Loads the items of the input, and counts the problems that it finds. It must yield the
# same items each time, and be picklable.
Load = Callable[[Counter[str]], Iterable[Any]]


class PartMaker(Protocol):
    """Computes the rows of a part. It is pickled to reach the workers of a cluster.

    suffix (str): The suffix of its files, such as ".parquet".
    fingerprint (str): Changes whenever the same items would give other rows.
    """

    suffix: str
    fingerprint: str

    def write(self, first: int, items: list[Any], path: Path) -> int:
        """Write the rows of some items to a file. Equal arguments must give equal rows,
        whatever was computed before.

        first (int): The number of the first item in the whole input.
        RETURNS (int): The number of rows.
        """


class Task(NamedTuple):
    """A part to make.

    name (str): The name of its file: its number, and a fingerprint of the maker and the
        items, because the folder may have parts of other inputs.
    first (int): The number of its first item in the whole input.
    n_items (int): The number of its items.
    items (list[Any] | None): What JSON can hold; None if the part is there already.
    """

    name: str
    first: int
    n_items: int
    items: list[Any] | None


class Record(NamedTuple):
    """A part that was made: the file, how many items and rows it has, its checksum."""

    name: str
    first: int
    items: int
    rows: int
    checksum: str


def divide(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Divide items into lists of `size` items; the last one may be shorter."""
    stream = iter(items)
    while part := list(islice(stream, size)):
        yield part


def part_key(fingerprint: str, first: int, items: list[Any]) -> str:
    """Return 16 hexadecimal digits that depend on all that a part is made from."""
    return fingerprint_data([fingerprint, first, items])[:16]


def make_tasks(
    fingerprint: str,
    suffix: str,
    items: Iterable[Any],
    size: int,
    done: Iterable[str],
) -> Iterator[Task]:
    """Divide items into the tasks of parts.

    fingerprint, suffix (str): Those of the maker.
    size (int): The number of items in a part.
    done (Iterable[str]): The names of the parts that are there already.
    """
    done = set(done)
    first = 0
    for number, part in enumerate(divide(items, size)):
        key = part_key(fingerprint, first, part)
        name = f"{number:08}-{key}{suffix}"
        yield Task(name, first, len(part), None if name in done else part)
        first += len(part)


def make_part(maker: PartMaker, folder: Path, task: Task) -> Record:
    """Make a part. Several processes may make the same one: its file is always
    complete, and always the same."""
    assert task.items is not None
    rows, checksum = 0, ""

    def write(path: Path) -> None:
        nonlocal rows, checksum
        rows = maker.write(task.first, task.items or [], path)
        checksum = checksum_file(path)

    write_atomically(folder / task.name, write)
    return Record(task.name, task.first, task.n_items, rows, checksum)
