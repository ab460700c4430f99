import configparser
import re
from pathlib import Path

import pytest
from weasel.util import load_project_config

import spacy_elmo

ROOT = Path(__file__).parents[1]


def code_blocks(language):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    return [block for name, block in blocks if name == language]


def test_ci_runs_the_test_command_of_the_readme():
    commands = [block.strip() for block in code_blocks("") if "pytest" in block]
    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("\n")


def test_tested_torch_is_pinned_and_the_lower_bound_admits_it():
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "torch==2.13.0" in pins.split("\n")
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert "torch>=2.6.0" in config["options"]["install_requires"].split("\n")


def test_readme_code_is_python():
    blocks = code_blocks("python")
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")


@pytest.mark.parametrize("name", ["CHANGELOG.md", "LICENSE", "project.yml", "setup.py"])
def test_what_a_maintained_project_has(name):
    assert (ROOT / name).read_text(encoding="utf-8").strip()


def test_changelog_knows_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {spacy_elmo.__version__}" in text


def test_project_is_valid_and_needs_no_shell():
    config = load_project_config(ROOT)
    commands = {command["name"] for command in config["commands"]}
    for steps in config["workflows"].values():
        assert set(steps) <= commands
    for command in config["commands"]:
        assert all(line.startswith("python ") for line in command["script"])
