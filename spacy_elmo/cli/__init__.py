"""The commands of `python -m spacy elmo`.

spaCy imports this package whenever any of its own commands runs. So a command imports
whatever is slow to import only when it is called.
"""

import io
import sys

import typer
from spacy.cli._util import app as spacy_app

from .spacy_errors import install_hook

app = typer.Typer(
    name="elmo",
    help="Contextual word vectors (ELMo) from a bidirectional language model (biLM)",
    no_args_is_help=True,
)
spacy_app.add_typer(app)
install_hook()


@app.callback()
def elmo() -> None:
    # Print a question mark for characters that the terminal or pipe cannot encode, such
    # as Hangul, instead of failing.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


from . import (  # noqa: E402,F401  (each module adds its command to app)
    annotate,
    assets,
    compare,
    convert,
    embed,
    evaluate,
    explore,
    info,
    init_config,
    neighbors,
    prepare,
    pretrain,
    probe,
    report,
    senses,
)
