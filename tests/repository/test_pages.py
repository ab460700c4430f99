"""Check that everything the pages name exists, and that both READMEs say the same."""

import re

import pytest
import srsly
from helpers.pages import (
    KOREAN,
    README,
    ROOT,
    count_numbers,
    is_installation,
    load_pyproject,
    read_blocks,
    read_prose,
    read_rows,
    read_sections,
)
from typer.main import get_command

from spacy_elmo.cli import app

PAGES = [
    path
    for pattern in ("*.md", "assets/*.md", "benchmarks/*.md", "docs/*.md")
    for path in ROOT.glob(pattern)
]
PACKAGE = ROOT / "spacy_elmo"
# Both READMEs must have equally many of these in each section: headings, list items,
# table rows, questions.
PARTS = [r"^#+ ", r"^- ", r"^\|", r"^\*\*"]

both = pytest.mark.parametrize("path", [README, KOREAN], ids=lambda path: path.name)


# The two commands that install the package; running them here would take too long


def test_first_command_runs_the_project_and_second_the_tests():
    first, second = filter(is_installation, read_blocks(README, "bash"))
    assert first.code.strip().endswith("&& python -m spacy project run all .")
    assert "all" in srsly.read_yaml(ROOT / "project.yml")["workflows"]
    for path in (".ci/run", ".github/workflows/tests.yml"):
        lines = (ROOT / path).read_text("utf8").split("\n")
        commands = [re.sub(r"^ *- run: ", "", line) for line in lines]
        assert second.code.strip() in commands


@both
def test_extras_exist(path):
    extras = set(load_pyproject()["project"]["optional-dependencies"])
    asked = re.findall(r"(?:\.|spacy-elmo)\[([\w,]+)\]", path.read_text("utf8"))
    assert asked
    assert {name for names in asked for name in names.split(",")} <= extras
    *_, last = read_sections(path).values()
    (listed,) = re.findall(r"(?:pip:|extra는) (.*?)\.[ \n]", last, re.S)
    assert set(re.findall(r"`(\w+)`", listed)) == extras


# Names of files, variables and commands


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_and_configs_exist(page):
    prose = re.sub(r"`[^`\n]*`", "", read_prose(page))
    for link in re.findall(r"\[[^\]]*\]\(([^)]+)\)", prose):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link
    for name in re.findall(r"configs/([\w*.]+\w)", page.read_text("utf8")):
        assert list((ROOT / "configs").glob(name)), name


@both
def test_files_exist(path):
    prose = read_prose(path)
    names = re.findall(r"`([a-z]\w+_[\w*]+\.cfg)`", prose)
    assert names
    for name in names:
        assert list((ROOT / "configs").glob(name)), name
    for name in re.findall(r"`((?:spacy_elmo|assets|examples|benchmarks)/.*?)`", prose):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
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


@both
def test_project_has_the_variables_and_workflows_of_the_page(path):
    project = srsly.read_yaml(ROOT / "project.yml")
    used = re.findall(r"--vars\.(\w+)", path.read_text("utf8"))
    assert used and set(used) <= set(project["vars"])
    workflows = set(project["workflows"])
    rows = [re.fullmatch(r" `(\w+)` ", row[1]) for row in read_rows(path)]
    assert workflows <= {row[1] for row in rows if row}


@both
def test_table_of_commands_is_complete(path):
    commands = get_command(app).commands
    table = read_sections(path)[{README: "Commands", KOREAN: "명령"}[path]]
    _, *rows = re.findall(r"^\| `(\w+) ?(.*?)` \|", table, re.M)  # under a header
    assert sorted(name for name, _ in rows) == sorted(commands)
    for name, arguments in rows:
        known = {option for param in commands[name].params for option in param.opts}
        assert set(re.findall(r"--[\w-]+(?![\w.-])", arguments)) <= known, name


# The Korean README against the English one


def pairs():
    ours, theirs = read_sections(README), read_sections(KOREAN)
    assert len(ours) == len(theirs)
    return zip(ours.values(), theirs.items())


def test_korean_has_the_same_parts():
    for mine, (title, theirs) in pairs():
        for part in PARTS:
            counts = [len(re.findall(part, text, re.M)) for text in (mine, theirs)]
            assert counts[0] == counts[1], f"{title}: {part}"


def test_korean_names_the_same_code():
    for mine, (title, theirs) in pairs():
        codes = [set(re.findall(r"`([^`]+)`", text)) for text in (mine, theirs)]
        assert codes[0] == codes[1], title


def test_korean_has_the_same_figures():
    measured = read_sections(README)["Measured"], read_sections(KOREAN)["측정 결과"]
    assert count_numbers(measured[0]) == count_numbers(measured[1])
    ours, theirs = read_rows(README), read_rows(KOREAN)
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for mine, korean in zip(ours, theirs):
        assert list(map(count_numbers, mine)) == list(map(count_numbers, korean)), (
            korean
        )
