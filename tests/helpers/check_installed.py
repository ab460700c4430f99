"""Check that an installed spacy-elmo has all files that it needs.

Run `python -m helpers.check_installed OUTPUT` in the folder tests/, with a Python in
which spacy-elmo is installed from a wheel. The last line that it prints is the folder
of the installed package."""

import json
import subprocess
import sys
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import spacy
from spacy.cli._util import app as spacy_app
from spacy.util import load_config_from_str, registry
from typer.main import get_command
from typer.testing import CliRunner

import spacy_elmo

from .report_samples import write_all


def run_spacy(*args):
    command = [sys.executable, "-m", "spacy", *map(str, args)]
    subprocess.run(command, check=True)


def check_pipeline(output):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("Let's stick to improvisation in this skit.")
    assert doc.tensor.shape[0] == len(doc) and doc.tensor.any()
    nlp.to_disk(output / "pipeline")


def check_help():
    """Call each command with --help, in one process because starting spaCy is slow."""
    registry.cli.get_all()  # imports the commands of plugins, as `python -m spacy` does
    names = get_command(spacy_app).commands["elmo"].commands
    assert {"pretrain", "report", "convert"} <= names.keys()
    for name in names:
        done = CliRunner().invoke(spacy_app, ["elmo", name, "--help"])
        assert done.exit_code == 0 and "--help" in done.output, (name, done.output)


def check_report(output):
    folder = write_all(output / "results")
    run_spacy("elmo", "report", folder)
    page = (folder / "report.html").read_text("utf8")
    assert "<svg" in page and "<style" in page


def check_package(output):
    (output / "package").mkdir()
    options = ["--build", "wheel", "--name", "installed"]
    run_spacy("package", output / "pipeline", output / "package", *options)
    (wheel,) = (output / "package").rglob("*.whl")
    assert wheel.stat().st_size > 1_000_000  # the biLM is in it


def check_files():
    for entry in files("spacy_elmo.configs").iterdir():
        text = entry.read_text("utf8")
        if entry.name.endswith(".json"):
            assert json.loads(text)
        else:
            assert load_config_from_str(text, interpolate=False)
    package = files("spacy_elmo")
    assert (package / "py.typed").is_file()
    installed = distribution("spacy-elmo")
    licences = [path for path in installed.files if ".dist-info/licenses/" in str(path)]
    assert sorted(path.name for path in licences) == ["LICENSE", "LICENSE-WEIGHTS"]
    assert installed.metadata["License-Expression"] == "MIT AND CC-BY-SA-4.0"


def main(output):
    output.mkdir(parents=True)
    check_pipeline(output)
    check_help()
    check_report(output)
    check_package(output)
    check_files()
    print(Path(spacy_elmo.__file__).parent)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
