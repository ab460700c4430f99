"""Build the sdist and the wheel, and use them without the source folder."""

import fnmatch
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from helpers.environments import install_wheel, make_environment
from helpers.pages import README, ROOT

pytestmark = pytest.mark.slow

# Files and folders that tools and project.yml create in the source folder.
MADE = [
    ".git",
    ".venv*",
    "venv",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
    "build",
    "dist",
]
MADE += ["corpus", "training", "packages"]
BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, sys.argv[1])(sys.argv[2])
"""
# With PYTHONPATH, Python could import the source instead of the installed package.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def ignore(folder, names):
    """Return the names that shutil.copytree must not copy."""
    if Path(folder) != ROOT:
        return {"__pycache__"}
    return {name for pattern in MADE for name in fnmatch.filter(names, pattern)}


def run(*args, cwd, python=sys.executable):
    done = subprocess.run(
        [python, *map(str, args)],
        cwd=cwd,
        env={**CLEAN, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with the unpacked sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    shutil.copytree(ROOT, folder / "source", ignore=ignore)
    run("-c", BUILD, "build_sdist", folder, cwd=folder / "source")
    shutil.rmtree(folder / "source")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(folder)
    (folder / sdist.name.removesuffix(".tar.gz")).rename(folder / "sdist")
    run("-c", BUILD, "build_wheel", folder, cwd=folder / "sdist")
    return folder


def list_files(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_sdist_has_every_file_of_the_repository(built):
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    tracked = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    assert tracked - list_files(built / "sdist") == set()


def test_tests_run_from_the_sdist(built):
    args = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
    args += ["tests/text/test_doc_files.py", "tests/bilm/test_golden.py"]
    args += ["tests/repository/test_packaging.py"]
    out = run("-m", "pytest", *args, cwd=built / "sdist")
    assert " passed" in out


def test_wheel_has_all_files_of_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name[-1] != "/"}
    ours = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    package = list_files(built / "sdist" / "spacy_elmo")
    package = {name for name in package if "__pycache__" not in name}
    assert ours == {f"spacy_elmo/{name}" for name in package}


def test_wheel_has_the_readme_as_markdown_for_pypi(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        (name,) = [x for x in file.namelist() if x.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(file.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload(decode=True).decode("utf8")
    assert text.strip() == README.read_text("utf8").strip()


def test_wheel_works_in_an_empty_environment_without_the_source(built, tmp_path):
    shutil.copytree(
        built / "sdist" / "tests" / "helpers", tmp_path / "tests" / "helpers"
    )
    (wheel,) = built.glob("*.whl")
    python = make_environment(tmp_path / "env", with_project=False)
    install_wheel(python, wheel)
    check = ["-m", "helpers.check_installed", tmp_path / "output"]
    out = run(*check, cwd=tmp_path / "tests", python=python)
    used = Path(out.strip().split("\n")[-1])
    assert (tmp_path / "env").resolve() in used.resolve().parents
