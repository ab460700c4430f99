"""Test that the pictures in docs/images are those that docs/tools makes, that they need
nothing else, and that the README says in words what they show."""

import re
import xml.etree.ElementTree as ET

import pytest
from helpers.pages import DOCS, README, count_numbers, find_korean
from helpers.pipelines import run_python

IMAGES = sorted((DOCS / "images").glob("*.svg"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def read_picture(path):
    """Return the text of a picture with "#" for each number, and the numbers."""
    text = path.read_text("utf8")
    return NUMBER.sub("#", text), [float(x) for x in NUMBER.findall(text)]


@pytest.mark.slow
def test_pictures_are_up_to_date(tmp_path):
    run_python(DOCS / "tools" / "make_pictures.py", "--output", tmp_path)
    made = sorted(tmp_path.glob("*.svg"))
    assert [path.name for path in made] == [path.name for path in IMAGES]
    for new, old in zip(made, IMAGES):
        if old.name.startswith("senses"):
            (text, numbers), (kept, expected) = map(read_picture, (new, old))
            assert text == kept, old.name
            # On another machine, vectors differ in the last bits.
            assert numbers == pytest.approx(expected, abs=2), old.name
        else:
            assert new.read_text("utf8") == old.read_text("utf8"), old.name


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_picture_needs_nothing_else(path):
    text = path.read_text("utf8")
    root = ET.fromstring(text)
    assert root[0].tag.endswith("title") and root[0].text
    assert root.get("lang") == ("ko" if path.name.endswith(".ko.svg") else "en")
    assert "prefers-color-scheme: dark" in text
    assert not re.search(
        r"https?://(?!www\.w3\.org/2000/svg)|@import|<script|url\(", text
    )


@pytest.mark.parametrize("page", [README, find_korean(README)], ids=["en", "ko"])
def test_readme_says_what_the_pictures_show(page):
    """Check that each number of a description is in the picture."""
    images = re.findall(r"!\[([^\]]+)\]\(\S+/(\w[\w.]+\.svg)\)", page.read_text("utf8"))
    assert [name.split(".")[0] for _, name in images] == ["senses_stick", "gains"]
    for words, name in images:
        title = ET.parse(DOCS / "images" / name).getroot()[0].text
        numbers = count_numbers(words)
        assert numbers and numbers.keys() <= count_numbers(title).keys()
