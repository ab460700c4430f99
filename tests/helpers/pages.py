"""Split the README and the pages of docs/ into code blocks, prose, sections and tables.

Each page has a Korean version beside it: README.ko.md beside README.md."""

import re
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
# The README also stands on PyPI, so its links name this address.
ONLINE = "https://github.com/spacy-elmo/spacy-elmo/blob/main/"
IMAGES = "https://raw.githubusercontent.com/spacy-elmo/spacy-elmo/main/"
# Pages for people who work on the code are in English only.
ENGLISH_ONLY = {"architecture.md"}
ENGLISH = [
    README,
    *(
        path
        for path in sorted(DOCS.glob("*.md"))
        if not path.name.endswith(".ko.md") and path.name not in ENGLISH_ONLY
    ),
]
FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
NUMBER = re.compile(
    r"(?<![A-Za-z\d])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*)"
    r"( million\b| billion\b|만|억)?"
)
UNITS = {" million": 10**6, " billion": 10**9, "만": 10**4, "억": 10**8}


class Block(NamedTuple):
    """A code block, its page, and the number of the line on which it begins."""

    page: Path
    language: str
    code: str
    line: int


def find_korean(path):
    """Return the Korean version of an English page."""
    return path.with_name(f"{path.stem}.ko.md")


def page_id(path):
    return path.relative_to(ROOT).as_posix()


def load_pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))


def read_blocks(path, *languages):
    """Return the code blocks of a page in the given languages, by default in all."""
    text = path.read_text("utf8")
    blocks = [
        Block(path, found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in FENCED.finditer(text)
    ]
    return [b for b in blocks if not languages or b.language in languages]


def is_installation(block):
    return "pip install" in block.code


def is_for_contributors(block):
    """Return whether a block tests or checks this repository."""
    return block.code.startswith(("python -m pytest", "ruff ", "mkdocs "))


def needs_several_machines(block):
    """Tell whether a block is for several machines. Other tests try it on one."""
    return "torchrun --nnodes" in block.code


def read_prose(path):
    """Return a page without its code blocks."""
    return FENCED.sub("", path.read_text("utf8"))


def read_links(path):
    """Return the links of a page to files of the repository, as paths from its top."""
    prose = re.sub(r"`[^`\n]*`", "", read_prose(path))
    found = []
    for link in re.findall(r"\[[^\]]*\]\(([^)]+)\)", prose):
        for online in (ONLINE, IMAGES):
            if link.startswith(online):
                found.append(link.removeprefix(online))
        if not link.startswith(("http://", "https://")):
            target = (path.parent / link.partition("#")[0]).resolve()
            found.append(target.relative_to(ROOT).as_posix())
    return found


def read_sections(path):
    """Map each heading to the prose below it. The text before the first heading has the
    key ""."""
    parts = re.split(r"^## (.*)\n", "\n" + read_prose(path), flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[0::2]))


def read_rows(path):
    """Return the rows of all tables, each as a list of cells."""
    return [x.split("|") for x in read_prose(path).split("\n") if x.startswith("|")]


def count_numbers(text):
    """Count how often each number occurs in a text, without digits in names like int8.

    "67.5 million" and the Korean "6,750만" count as the same number, "3" and "3.0" as
    two numbers.
    """
    counts = Counter()
    for written, unit in NUMBER.findall(text):
        digits = written.replace(",", "")
        counts[str(int(Decimal(digits) * UNITS[unit])) if unit else digits] += 1
    return counts
