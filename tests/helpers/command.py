"""Call the commands of `spacy` and `spacy elmo` without starting a new process, because
a new process would import spaCy and torch again."""

import contextlib
import io
import runpy
import sys
from unittest import mock

import spacy.cli
from spacy.util import registry
from typer.testing import CliRunner

from spacy_elmo.cli import app


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def call_spacy(*args, **options):
    """Call a command of spaCy, or one of ours if the first argument is "elmo"."""
    registry.cli.get_all()  # adds the commands of entry points, as spaCy does it
    return CliRunner().invoke(spacy.cli.app, [str(arg) for arg in args], **options)


def run_spacy(*args):
    """Call a command of spaCy that must succeed, and return what it printed."""
    done = call_spacy(*args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def call_module(name, *args):
    """Run a module as `python -m` does. Return its exit code and its error message as
    one line."""
    sys.modules.pop(name, None)  # `python -m` starts without it
    said = io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", [name, *map(str, args)]),
        contextlib.redirect_stderr(said),
    ):
        try:
            runpy.run_module(name, run_name="__main__")
        except SystemExit as stop:
            if isinstance(stop.code, str):
                return 1, " ".join(stop.code.split())
            code = stop.code or 0
    return code, " ".join(said.getvalue().split())


def run_project_command(command, **options):
    """Replaces the function of weasel that starts a program of project.yml."""
    assert command[:2] == [sys.executable, "-m"]
    if command[2] == "spacy":
        done = call_spacy(*command[3:])
        code, said = done.exit_code, done.output
    else:
        code, said = call_module(*command[2:])
    print(said)
    if code:
        sys.exit(code)


def text(done):
    """Return the output of a command as one line.

    The commands wrap long lines, so messages could not be found otherwise.
    """
    return " ".join(done.output.split())


def refused(*args):
    """Call a command that must fail without a traceback, and return its output."""
    done = call(*args)
    assert done.exit_code == 1 and "Traceback" not in done.output
    return text(done)
