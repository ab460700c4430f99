"""`python -m spacy elmo ...`. spaCy imports this for each of its commands, whatever it
is, so nothing heavy is imported before a command of ours runs."""

import io
import sys

import typer
from spacy.cli._util import app as spacy_app

app = typer.Typer(
    name="elmo",
    help="Contextual word vectors from a bidirectional language model",
    no_args_is_help=True,
)
spacy_app.add_typer(app)


@app.callback()
def elmo() -> None:
    # A terminal or a pipe that has no Hangul gets a question mark, not an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


from . import (  # noqa: E402,F401  (they add their commands to app)
    assets,
    compare,
    convert,
    embed,
    evaluate,
    info,
    neighbors,
    prepare,
    pretrain,
    probe,
    report,
    senses,
)
