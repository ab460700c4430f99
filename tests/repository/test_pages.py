"""Check that all files and names mentioned in the README and docs/ exist, and that the
Korean pages have the same content as the English ones."""

import re

import pytest
import srsly
from helpers.pages import (
    DOCS,
    ENGLISH,
    ENGLISH_ONLY,
    IMAGES,
    ONLINE,
    README,
    ROOT,
    count_numbers,
    find_korean,
    is_for_contributors,
    is_installation,
    load_pyproject,
    page_id,
    read_blocks,
    read_links,
    read_prose,
    read_rows,
    read_sections,
)
from typer.main import get_command

from spacy_elmo.cli import app

PAGES = [
    path
    for pattern in (
        "*.md",
        "assets/*.md",
        "benchmarks/*.md",
        "docs/*.md",
        "spacy_elmo/bundled/*/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
]
PACKAGE = ROOT / "spacy_elmo"
TRANSLATED = [*ENGLISH, *map(find_korean, ENGLISH)]
# In each section, a Korean page must have as many headings, list items, table rows and
# questions as the English page.
PARTS = [r"^#+ ", r"^- ", r"^\|", r"^\*\*"]
MAX_README_LINES = 150

each_page = pytest.mark.parametrize("page", PAGES, ids=page_id)
each_translated = pytest.mark.parametrize("page", TRANSLATED, ids=page_id)
each_english = pytest.mark.parametrize("page", ENGLISH, ids=page_id)


def in_both_languages(page):
    pages = [page, find_korean(page)]
    return pytest.mark.parametrize("page", pages, ids=page_id)


# The README


@in_both_languages(README)
def test_readme_is_short(page):
    assert len(page.read_text("utf8").splitlines()) <= MAX_README_LINES


@in_both_languages(README)
def test_readme_links_to_every_page(page):
    linked = {x for x in read_links(page) if re.fullmatch(r"docs/[\w.]+\.md", x)}
    korean = page != README
    pages = {page_id(find_korean(x) if korean else x) for x in ENGLISH if x != README}
    assert linked == pages | {f"docs/{name}" for name in ENGLISH_ONLY}


@in_both_languages(README)
def test_links_of_the_readme_work_on_pypi(page):
    links = re.findall(r"\]\(([^)]+)\)", read_prose(page))
    assert links and [x for x in links if not x.startswith("https://")] == []
    source = load_pyproject()["project"]["urls"]["Source"]
    assert ONLINE == f"{source}/blob/main/"
    images = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", read_prose(page))
    assert len(images) == 2 and all(x.startswith(IMAGES) for x in images)


def test_first_command_runs_the_project_and_second_the_tests():
    """Compare the commands with other files, because to run them takes too long."""
    install, first, second = filter(is_installation, read_blocks(README, "bash"))
    assert install.code.strip() == "pip install -e ."
    assert first.code.strip().endswith("&& python -m spacy project run all .")
    assert "all" in srsly.read_yaml(ROOT / "project.yml")["workflows"]
    for path in (".ci/run", ".github/workflows/tests.yml"):
        lines = (ROOT / path).read_text("utf8").split("\n")
        commands = [re.sub(r"^ *- run: ", "", line) for line in lines]
        assert second.code.strip() in commands


def test_workflow_runs_the_commands_for_contributors():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf8")
    blocks = filter(is_for_contributors, read_blocks(DOCS / "contributing.md", "bash"))
    lines = [line for block in blocks for line in block.code.splitlines()]
    assert len(lines) == 4
    assert [line for line in lines if line not in workflow] == []


@in_both_languages(README)
def test_readme_names_all_extras(page):
    extras = set(load_pyproject()["project"]["optional-dependencies"])
    _, install, *_ = read_sections(page).values()
    *_, listed = install.strip().split("\n\n")
    assert set(re.findall(r"`(\w+)`", listed)) == extras


# Names of files, extras, variables and commands


@each_page
def test_links_and_configs_exist(page):
    for link in read_links(page):
        assert (ROOT / link).exists(), link
    for name in re.findall(r"configs/([\w*.]+\w)", page.read_text("utf8")):
        assert list((ROOT / "configs").glob(name)), name


@each_translated
def test_files_exist(page):
    prose = read_prose(page)
    for name in re.findall(r"`([a-z]\w+_[\w*]+\.cfg)`", prose):
        assert list((ROOT / "configs").glob(name)), name
    folders = "spacy_elmo|assets|examples|benchmarks|configs|docs"
    for name in re.findall(rf"`((?:{folders})/.*?)`", prose):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("name", ["docs/contributing.md", "docs/architecture.md"])
def test_modules_named_for_contributors_exist(name):
    names = re.findall(r"\b[a-z_]+/[a-z_0-9/]+\.py\b", (ROOT / name).read_text("utf8"))
    assert names
    for module in names:
        assert any((folder / module).exists() for folder in (PACKAGE, ROOT)), module


def test_architecture_has_a_line_for_each_folder():
    rows = [row[1] for row in read_rows(ROOT / "docs" / "architecture.md")]
    named = {name for row in rows for name in re.findall(r"`([\w/]+)/`", row)}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders and folders <= named


@each_page
def test_extras_exist(page):
    extras = set(load_pyproject()["project"]["optional-dependencies"])
    asked = re.findall(r"(?:\.|spacy-elmo)\[([\w,]+)\]", page.read_text("utf8"))
    assert {name for names in asked for name in names.split(",")} <= extras


@each_page
def test_project_has_the_variables_and_workflows_of_the_page(page):
    project = srsly.read_yaml(ROOT / "project.yml")
    text = page.read_text("utf8")
    assert set(re.findall(r"--vars\.(\w+)", text)) <= set(project["vars"])
    known = {*project["workflows"], *(x["name"] for x in project["commands"])}
    assert set(re.findall(r"spacy project run ([\w-]+)", text)) <= known


@in_both_languages(DOCS / "pretraining.md")
def test_all_workflows_are_explained(page):
    workflows = set(srsly.read_yaml(ROOT / "project.yml")["workflows"])
    rows = [re.fullmatch(r" `(\w+)` ", row[1]) for row in read_rows(page)]
    assert workflows <= {row[1] for row in rows if row}
    assert re.findall(r"--vars\.(\w+)", page.read_text("utf8"))


@in_both_languages(DOCS / "commands.md")
def test_table_of_commands_is_complete(page):
    commands = get_command(app).commands
    rows = re.findall(r"^\| `([\w-]+) ?(.*?)` \|", read_prose(page), re.M)
    assert sorted(name for name, _ in rows) == sorted(commands)
    for name, arguments in rows:
        known = {option for param in commands[name].params for option in param.opts}
        assert set(re.findall(r"--[\w-]+(?![\w.-])", arguments)) <= known, name


# The pages of docs


@pytest.mark.parametrize("page", ENGLISH[1:], ids=page_id)
def test_page_begins_with_its_reader_and_a_link_to_the_korean_one(page):
    title, reader, link, *_ = page.read_text("utf8").split("\n\n")
    assert title.startswith("# ") and reader.startswith("This page is for people")
    assert reader.endswith(".") and ". " not in reader  # which means one sentence
    assert f"({find_korean(page).name})" in link


# Comparison of Korean and English pages


def test_every_korean_page_belongs_to_an_english_one():
    korean = {*ROOT.glob("*.ko.md"), *DOCS.glob("*.ko.md")}
    assert korean == set(map(find_korean, ENGLISH))


def pair_sections(page):
    ours, theirs = read_sections(page), read_sections(find_korean(page))
    assert len(ours) == len(theirs)
    return zip(ours.values(), theirs.items())


@each_english
def test_korean_has_the_same_parts(page):
    for mine, (title, theirs) in pair_sections(page):
        for part in PARTS:
            counts = [len(re.findall(part, text, re.M)) for text in (mine, theirs)]
            assert counts[0] == counts[1], f"{title}: {part}"


@each_english
def test_korean_names_the_same_code(page):
    for mine, (title, theirs) in pair_sections(page):
        codes = [set(re.findall(r"`([^`]+)`", text)) for text in (mine, theirs)]
        assert codes[0] == codes[1], title


@each_english
def test_korean_links_to_the_same_pages(page):
    for mine, (title, theirs) in pair_sections(page):
        texts = [re.sub(r"\.ko\.(md|svg)", r".\1", text) for text in (mine, theirs)]
        links = [sorted(re.findall(r"\]\(([^)]+)\)", text)) for text in texts]
        assert links[0] == links[1], title


@each_english
def test_korean_has_the_same_numbers(page):
    for mine, (title, theirs) in pair_sections(page):
        assert count_numbers(mine) == count_numbers(theirs), title
    ours, theirs = read_rows(page), read_rows(find_korean(page))
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for mine, korean in zip(ours, theirs):
        assert list(map(count_numbers, mine)) == list(map(count_numbers, korean)), (
            korean
        )
