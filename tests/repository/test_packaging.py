"""Test that the metadata in pyproject.toml agree with the code and other files."""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import srsly
from helpers.pages import ROOT, load_pyproject
from packaging.requirements import Requirement
from packaging.version import Version

import spacy_elmo

PROJECT = load_pyproject()["project"]
PACKAGE = ROOT / "spacy_elmo"
CONFIGS = PACKAGE / "configs"
# Modules that are installed by a distribution with another name.
DISTRIBUTIONS = {"mecab": "python-mecab-ko", "vl_convert": "vl-convert-python"}
CC_BY_SA = "https://creativecommons.org/licenses/by-sa/4.0/"


def imported_modules(path):
    """Return the first part of the names of all modules that a file imports, without
    relative imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


def declared_names():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return {Requirement(line).name.lower() for group in groups for line in group}


def imported_distributions():
    """Map each distribution that the package imports to the files that import it."""
    files = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for module in imported_modules(path) - sys.stdlib_module_names - {"spacy_elmo"}:
            files[DISTRIBUTIONS.get(module, module)].add(path.relative_to(ROOT))
    return files


def test_every_import_of_the_package_is_declared():
    files = imported_distributions()
    assert {"spacy", "thinc", "torch"} <= files.keys()
    declared = declared_names()
    missing = {name: paths for name, paths in files.items() if name not in declared}
    assert missing == {}


def test_every_dependency_is_imported_by_the_package():
    required = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert required <= imported_distributions().keys()


def test_tested_torch_is_pinned_and_the_lower_bound_admits_it():
    lines = (ROOT / "requirements.txt").read_text("utf8").split("\n")
    (pin,) = [Requirement(line) for line in lines if line.startswith("torch")]
    (pinned,) = pin.specifier
    assert pinned.operator == "==" and pinned.version == "2.13.0"
    (torch,) = map(Requirement, PROJECT["optional-dependencies"]["train"])
    assert torch.name == "torch"
    assert Version(pinned.version) in torch.specifier
    assert not any(bound.operator in ("==", "<", "<=") for bound in torch.specifier)


def test_lower_bounds_are_those_of_the_tested_versions():
    extras = PROJECT["optional-dependencies"]
    own = [r for r in map(Requirement, extras["dev"]) if r.name == "spacy-elmo"]
    shared = {extra for requirement in own for extra in requirement.extras}
    lines = [*PROJECT["dependencies"], *(x for e in shared for x in extras[e])]
    bounds = {}
    for requirement in map(Requirement, lines):
        (bound,) = [s for s in requirement.specifier if s.operator == ">="]
        bounds[requirement.name] = bound.version
    bounds.pop("torch", None)  # only one version is tested, see above
    lines = (ROOT / "tests" / "lower_bounds.txt").read_text("utf8").split("\n")
    pins = [line.split("==") for line in lines if line and line[0] != "#"]
    assert dict(pins) == bounds


def test_torch_comes_with_extras_alone():
    assert "torch" not in {Requirement(line).name for line in PROJECT["dependencies"]}
    for extra in ("cuda12x", "cuda13x", "dev", "project"):
        lines = map(Requirement, PROJECT["optional-dependencies"][extra])
        assert any("train" in line.extras for line in lines), extra


def test_extras_that_others_name_exist():
    extras = PROJECT["optional-dependencies"]
    for lines in extras.values():
        for requirement in map(Requirement, lines):
            if requirement.name == PROJECT["name"]:
                assert requirement.extras <= extras.keys()


def test_oldest_python_is_the_same_everywhere():
    pyproject = load_pyproject()
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert pyproject["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert min(classifiers, key=Version) == oldest


# Licences


def test_both_licences_are_named_with_their_files():
    assert PROJECT["license"] == "MIT AND CC-BY-SA-4.0"
    code, weights = [
        (ROOT / name).read_text("utf8") for name in PROJECT["license-files"]
    ]
    assert code.startswith("MIT License")
    assert CC_BY_SA in weights
    for path in (PACKAGE / "bundled").glob("*/README.md"):
        assert path.parent.name in weights
        assert CC_BY_SA in path.read_text("utf8")


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_readme_names_both_licences(name):
    *_, last = (ROOT / name).read_text("utf8").strip().split("\n\n")
    assert "MIT" in last and CC_BY_SA in last
    assert "/LICENSE)" in last and "/spacy_elmo/bundled/LICENSE-WEIGHTS)" in last


# Other files


def test_configs_in_the_package_are_those_of_the_project():
    names = {path.name for path in (ROOT / "configs").iterdir()}
    assert names == {path.name for path in CONFIGS.iterdir()} and names
    for name in names:
        ours, theirs = (folder / name for folder in (ROOT / "configs", CONFIGS))
        assert ours.read_bytes() == theirs.read_bytes(), f"cp configs/{name} {theirs}"


def test_changelog_and_citation_have_this_version():
    text = (ROOT / "CHANGELOG.md").read_text("utf8")
    assert f"## {spacy_elmo.__version__}" in text
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert str(citation["version"]) == spacy_elmo.__version__
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert "1802.05365" in str(citation["references"])


def test_setup_is_only_a_shim():
    text = Path(ROOT / "setup.py").read_text("utf8")
    assert text.split() == "from setuptools import setup setup()".split()
