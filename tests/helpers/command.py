"""Call our commands within this process."""

from typer.testing import CliRunner

from spacy_elmo.cli import app


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def text(done):
    return " ".join(done.output.split())  # without the line breaks of the terminal


def refused(*args):
    """RETURNS (str): What a command says that does not like something."""
    done = call(*args)
    assert done.exit_code == 1 and "Traceback" not in done.output
    return text(done)
