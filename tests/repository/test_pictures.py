"""Test that the pictures in docs/images are those that docs/tools makes, that they need
nothing else, and that the README says in words what they show."""

import re
import xml.etree.ElementTree as ET

import pytest
from helpers.browser import open_browser
from helpers.pages import DOCS, README, count_numbers, find_korean
from helpers.pipelines import run_python

IMAGES = sorted((DOCS / "images").glob("*.svg"))
PHONE = 328  # pixels: a screen of 360 without the margins of a page
# The boxes of all texts of a picture, in its own units.
TEXT_BOXES = """svg => [...svg.querySelectorAll("text")].map(text => {
    const box = text.getBBox(), moved = text.getCTM(), fixed = svg.getCTM()
    const x = box.x + (moved.e - fixed.e) / fixed.a
    const y = box.y + (moved.f - fixed.f) / fixed.d
    return [x, y, x + box.width, y + box.height, text.textContent]
})"""
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


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_text_is_readable_on_a_phone(path):
    text = path.read_text("utf8")
    width = float(ET.fromstring(text).get("viewBox").split()[2])
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", text)]
    assert sizes and min(sizes) * PHONE / width >= 11


@pytest.mark.slow
def test_texts_of_pictures_stay_inside_and_apart():
    with open_browser() as browser:
        page = browser.new_page()
        for path in IMAGES:
            page.goto(path.as_uri())
            svg = page.query_selector("svg")
            _, _, width, height = map(float, svg.get_attribute("viewBox").split())
            boxes = svg.evaluate(TEXT_BOXES)
            for n, (left, top, right, bottom, text) in enumerate(boxes):
                inside = 0 <= left and 0 <= top and right < width and bottom < height
                assert inside, (path.name, text)
                for x, y, to_x, to_y, other in boxes[:n]:
                    # A line of text may reach into the space above the next one.
                    apart = to_x <= left or right <= x or to_y - 4 <= top
                    assert apart or bottom - 4 <= y, (path.name, text, other)


@pytest.mark.parametrize("page", [README, find_korean(README)], ids=["en", "ko"])
def test_map_of_the_readme_is_convincing(page):
    """Check that it shows the word that the page's first example has too, and that each
    use of it is nearest to one of the same sense."""
    described, name = re.search(
        r"!\[([^\]]+)\]\(\S+/(senses\S*\.svg)\)", page.read_text("utf8")
    ).groups()
    title = ET.parse(DOCS / "images" / name).getroot()[0].text
    assert "stick" in described and "“stick”" in title and "en_elmo_sm" in title
    assert count_numbers(title)["20"] >= 2  # uses, and those with the right neighbour


@pytest.mark.parametrize("page", [README, find_korean(README)], ids=["en", "ko"])
def test_readme_says_what_the_pictures_show(page):
    """Check that each number of a description is in the picture."""
    images = re.findall(r"!\[([^\]]+)\]\(\S+/(\w[\w.]+\.svg)\)", page.read_text("utf8"))
    assert [name.split(".")[0] for _, name in images] == ["senses", "gains"]
    for words, name in images:
        title = ET.parse(DOCS / "images" / name).getroot()[0].text
        numbers = count_numbers(words)
        assert numbers and numbers.keys() <= count_numbers(title).keys()
