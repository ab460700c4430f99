"""Split the READMEs into code blocks, prose, sections and tables."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
README, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)


class Block(NamedTuple):
    """A code block and the number of the line on which it begins."""

    language: str
    code: str
    line: int


def load_pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))


def read_blocks(path, *languages):
    """Return the code blocks of a page, or only those in the given languages."""
    text = path.read_text("utf8")
    blocks = [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in FENCED.finditer(text)
    ]
    return [b for b in blocks if not languages or b.language in languages]


def is_installation(block):
    return "pip install" in block.code


def read_prose(path):
    """Return a page without its code blocks."""
    return FENCED.sub("", path.read_text("utf8"))


def read_sections(path):
    """Return the prose under each heading; the text before the first is under ""."""
    parts = re.split(r"^## (.*)\n", "\n" + read_prose(path), flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[0::2]))


def read_rows(path):
    """Return the rows of all tables, each as a list of cells."""
    return [x.split("|") for x in read_prose(path).split("\n") if x.startswith("|")]


def count_numbers(text):
    """Count each number in a text, except digits within names such as int8."""
    return Counter(re.findall(r"(?<![A-Za-z\d])\d+(?:[.,]\d+)*", text))
