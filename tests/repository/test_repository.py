import configparser
from pathlib import Path

import pytest

import spacy_elmo

ROOT = Path(__file__).parents[2]


def test_tested_torch_is_pinned_and_the_lower_bound_admits_it():
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "torch==2.13.0" in pins.split("\n")
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert "torch>=2.6.0" in config["options"]["install_requires"].split("\n")


@pytest.mark.parametrize("name", ["CHANGELOG.md", "LICENSE", "project.yml", "setup.py"])
def test_what_a_maintained_project_has(name):
    assert (ROOT / name).read_text(encoding="utf-8").strip()


def test_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {spacy_elmo.__version__}" in text
