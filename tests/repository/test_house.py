"""Rules for all Python files: docstrings, lengths and names.

A file or function may be longer than the limit if its docstring says why, in a sentence
with the words "long because". The signature and docstring of a function are not
counted, because commands declare and describe their options there."""

import ast
from collections import Counter
from functools import cache

import pytest
from helpers.pages import ROOT

FOLDERS = ["spacy_elmo", "tests", "benchmarks", "examples", "docs"]
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
PACKAGE = [path for path in FILES if path.is_relative_to(ROOT / "spacy_elmo")]
MAX_FILE, MAX_FUNCTION = 400, 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (*FUNCTIONS, ast.ClassDef, ast.Module)


@cache
def parse(path):
    """Return all syntax nodes of a file that can have a docstring. The first one is the
    module."""
    tree = ast.parse(path.read_text("utf8"))
    return [node for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]


def place(path, node):
    return f"{path.relative_to(ROOT).as_posix()}:{getattr(node, 'lineno', 1)}"


def explains_its_length(node):
    words = (ast.get_docstring(node) or "").split()
    return "long because" in " ".join(words)


def test_docstrings_begin_with_what_is_done():
    found = [
        place(path, node)
        for path in FILES
        for node in parse(path)
        if (ast.get_docstring(node) or "").startswith(("RETURNS", "YIELDS"))
    ]
    assert found == []


def test_long_files_say_why():
    found = []
    for path in FILES:
        n_lines = len(path.read_text("utf8").splitlines())
        if n_lines > MAX_FILE and not explains_its_length(parse(path)[0]):
            found.append(f"{place(path, None)}: {n_lines} lines")
    assert found == []


def test_long_functions_say_why():
    found = []
    for path in FILES:
        for node in parse(path):
            if isinstance(node, FUNCTIONS) and not explains_its_length(node):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                n_lines = node.end_lineno - body[0].lineno + 1 if body else 0
                if n_lines > MAX_FUNCTION:
                    found.append(f"{place(path, node)}: {node.name}, {n_lines} lines")
    assert found == []


def test_file_names_are_unique_in_the_package():
    """Check this because a traceback or a search is easier to read if a file name alone
    says which file is meant."""
    counts = Counter(path.name for path in PACKAGE if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("why", ["", "It is\n    long because it lists all cases."])
def test_an_explained_length_is_accepted(why):
    source = f'def f():\n    """Do it. {why}"""\n'
    (_, function) = [
        n for n in ast.walk(ast.parse(source)) if isinstance(n, DOCUMENTED)
    ]
    assert explains_its_length(function) == bool(why)
