"""Call the commands of `spacy elmo` without starting a new process."""

from typer.testing import CliRunner

from spacy_elmo.cli import app


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


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
