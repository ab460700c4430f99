"""Render the README as PyPI does."""

import re

import pytest
from helpers.pages import README, find_korean, page_id, read_blocks, read_rows
from readme_renderer import markdown

IN_BOTH_LANGUAGES = pytest.mark.parametrize(
    "page", [README, find_korean(README)], ids=page_id
)


def render(page):
    html = markdown.render(page.read_text("utf8"))
    assert html is not None, "PyPI would show the source"
    return html


@IN_BOTH_LANGUAGES
def test_tables_code_and_pictures_are_rendered(page):
    html = render(page)
    assert html.count("<pre") == len(read_blocks(page))
    assert html.count("<tr>") == len(read_rows(page)) - html.count("<table>")
    assert html.count("<img ") == 2
    text = re.sub(r"<pre.*?</pre>", "", html, flags=re.S)
    assert not re.search(r"```|\*\*|\]\(|^#", text, re.M)


@IN_BOTH_LANGUAGES
def test_links_lead_from_pypi_to_the_pages(page):
    targets = re.findall(r'(?:href|src)="([^"]*)"', render(page))
    sections = {f"#{name}" for name in re.findall(r' id="([^"]*)"', render(page))}
    others = [x for x in targets if not x.startswith("https://")]
    assert len(others) < len(targets) and set(others) <= sections
