"""The READMEs, taken apart."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
README, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)


class Block(NamedTuple):
    """A code block, and the line on which it begins."""

    language: str
    code: str
    line: int


def read_blocks(path, *languages):
    text = path.read_text("utf8")
    blocks = [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in FENCED.finditer(text)
    ]
    return [b for b in blocks if not languages or b.language in languages]


def is_installation(block):
    return "pip install" in block.code


def read_prose(path):
    """RETURNS: A page without its code blocks."""
    return FENCED.sub("", path.read_text("utf8"))


def read_sections(path):
    """RETURNS: The prose under each heading; what comes first is under ""."""
    parts = re.split(r"^## (.*)\n", "\n" + read_prose(path), flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[0::2]))


def read_rows(path):
    """RETURNS: The rows of all tables, cell by cell."""
    return [x.split("|") for x in read_prose(path).split("\n") if x.startswith("|")]


def numbers(text):
    """RETURNS: How often each occurs, but for those in names such as int8."""
    return Counter(re.findall(r"(?<![A-Za-z\d])\d+(?:[.,]\d+)*", text))
