"""Sense-tagged text in the usual layout of WSD evaluations: XML and a key file."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

SPACES = re.compile(r"[_\s]+")


class Instance(NamedTuple):
    """A word with a sense.

    start, end (int): Where its words are in the sentence.
    """

    id: str
    lemma: str
    pos: str
    start: int
    end: int


class Sentence(NamedTuple):
    words: list[str]
    instances: list[Instance]


def read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    """RETURNS (dict[str, tuple[str, ...]]): The senses of each instance, by its id; any
    of them is right."""
    keys: dict[str, tuple[str, ...]] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                name, *senses = line.split() or [""]
                if name and not senses:
                    raise ValueError(
                        f"{path}: found no sense in line {number}; expected an id and "
                        "its senses"
                    )
                if name:
                    keys[name] = tuple(senses)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: found no UTF-8; expected a key file") from None
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; expected a key file") from None
    return keys


def key_beside(path: Path) -> Path:
    """RETURNS (Path): Where the key file of x.data.xml usually is: x.gold.key.txt."""
    return path.with_name(
        path.name.removesuffix(".xml").removesuffix(".data") + ".gold.key.txt"
    )


def read_wsd(
    path: Path,
    limit: int | None = None,
    chosen: Callable[[int], bool] = lambda number: True,
) -> Iterator[Sentence]:
    """Read a data file, however large.

    limit (int | None): Of sentences.
    chosen (Callable[[int], bool]): Which texts to read, by their numbers.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected XML with senses")
    return islice(_read(path, chosen), limit)


def _read(path: Path, chosen: Callable[[int], bool]) -> Iterator[Sentence]:
    n_texts = 0
    try:
        for event, element in ElementTree.iterparse(path, ("start", "end")):
            if event == "start":
                n_texts += element.tag == "text"
            elif element.tag == "sentence":
                if chosen(max(n_texts - 1, 0)):
                    yield _sentence(path, element)
                element.clear()
            elif element.tag == "text":
                element.clear()  # of its empty sentences
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}: found no XML ({error})") from None


def _sentence(path: Path, element: ElementTree.Element) -> Sentence:
    words: list[str] = []
    instances: list[Instance] = []
    for child in element:
        form = (child.text or "").strip()
        parts = [part for part in SPACES.split(form) if part] or [form] * bool(form)
        if child.tag == "instance":
            name, lemma, pos = (child.get(key) for key in ("id", "lemma", "pos"))
            if name is None or lemma is None or pos is None or not parts:
                raise ValueError(
                    f"{path}: found an instance without id, lemma, pos or word in "
                    f"sentence {element.get('id')}; expected all four"
                )
            end = len(words) + len(parts)
            instances.append(Instance(name, lemma, pos, len(words), end))
        words.extend(parts)
    return Sentence(words, instances)
