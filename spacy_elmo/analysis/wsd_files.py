"""Read text with word senses in the usual format of word sense disambiguation (WSD): an
XML file with the text, and a key file with the senses."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

from ..regular_files import open_regular

BLOCK = 2**12
SPACES = re.compile(r"[_\s]+")


class Instance(NamedTuple):
    """A word or phrase with a sense.

    start (int): The position of its first word in the sentence.
    end (int): The position after its last word.
    """

    id: str
    lemma: str
    pos: str
    start: int
    end: int


class SenseSentence(NamedTuple):
    """The words of a sentence, and the instances among them, which have a sense."""

    words: list[str]
    instances: list[Instance]


def read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a key file, and return the senses of each instance, by the instance's id.
    If an instance has several senses, each of them is correct."""
    keys: dict[str, tuple[str, ...]] = {}
    try:
        with open_regular(path) as file:
            for number, data in enumerate(file, 1):
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                name, *senses = line.split() or [""]
                if name and not senses:
                    raise ValueError(
                        f"{path}:{number}: found no sense; expected an id and its "
                        "senses"
                    )
                if name:
                    keys[name] = tuple(senses)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not UTF-8; expected a key file") from None
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; expected a key file") from None
    return keys


def default_key_path(path: Path) -> Path:
    """Return where the key file of x.data.xml usually is: x.gold.key.txt."""
    return path.with_name(
        path.name.removesuffix(".xml").removesuffix(".data") + ".gold.key.txt"
    )


def read_wsd(
    path: Path,
    limit: int | None = None,
    is_wanted: Callable[[int], bool] = lambda number: True,
) -> Iterator[SenseSentence]:
    """Read an XML file sentence by sentence, so that it can be of any size.

    limit (int | None): Read at most this many sentences.
    is_wanted (Callable[[int], bool]): Called with the number of each <text>, from 0;
        if it returns False, the <text> is skipped.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected XML with senses")
    return islice(_read_sentences(path, is_wanted), limit)


def _read_sentences(
    path: Path, is_wanted: Callable[[int], bool]
) -> Iterator[SenseSentence]:
    n_texts = 0
    try:
        _refuse_definitions(path)
        for event, element in ElementTree.iterparse(path, ("start", "end")):
            if event == "start":
                n_texts += element.tag == "text"
            elif element.tag == "sentence":
                if is_wanted(max(n_texts - 1, 0)):
                    yield _parse_sentence(path, element)
                element.clear()  # keeps memory small
            elif element.tag == "text":
                element.clear()
    except (ElementTree.ParseError, expat.ExpatError, LookupError) as error:
        raise ValueError(f"{path}: this is not XML ({error})") from None


def _refuse_definitions(path: Path) -> None:
    """Raise ValueError if the file defines entities or default values of attributes.
    Entities can stand for other files, both can stand for more text than there is
    memory, and no file with senses needs them."""
    parser = expat.ParserCreate()
    begun: list[str] = []

    def refuse(name: str, *args: object) -> None:
        raise ValueError(f"found a definition of the entity '{name}'")

    def refuse_default(
        element: str, name: str, kind: str, default: str | None, required: bool
    ) -> None:
        if default is not None:  # each element would get a copy of it
            raise ValueError(f"found a default value of the attribute '{name}'")

    parser.EntityDeclHandler = refuse
    parser.AttlistDeclHandler = refuse_default
    parser.StartElementHandler = lambda name, attributes: begun.append(name)
    with open_regular(path) as file:
        while not begun and (block := file.read(BLOCK)):
            try:
                parser.Parse(block)
            except ValueError as error:  # such as that of the encoding EUC-KR
                raise ValueError(
                    f"{path}: {error}; expected UTF-8 without definitions"
                ) from None


def _parse_sentence(path: Path, element: ElementTree.Element) -> SenseSentence:
    words: list[str] = []
    instances: list[Instance] = []
    for child in element:
        form = (child.text or "").strip()
        # "grand_jury" is two words, but "_" alone is one.
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
    return SenseSentence(words, instances)
