"""Call the commands of `spacy elmo` in the process of the tests."""

from typer.testing import CliRunner

from spacy_elmo.cli import app


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def text(done):
    """Return the output of a command without the line breaks of the terminal."""
    return " ".join(done.output.split())


def refused(*args):
    """Call a command that must fail with a message, and return the message."""
    done = call(*args)
    assert done.exit_code == 1 and "Traceback" not in done.output
    return text(done)
