from pathlib import Path
from typing import Optional

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("embed")
def embed_cli(
    source: Path = Argument(..., help="A biLM of any kind"),
    text: str = Argument(..., help="A file, a folder or a pattern"),
    out: Path = Argument(..., help="The .hdf5 or .parquet file to write"),
    tokenized: bool = Option(
        False, "--tokenized", help="A sentence a line, words parted by spaces"
    ),
    lang: Optional[str] = Option(
        None, "--lang", help="Whose tokenizer; by default, what the biLM was trained on"
    ),
    tokenizer: Optional[str] = Option(
        None, "--tokenizer", help="A registered tokenizer, such as spacy.Tokenizer.v1"
    ),
    gpu_id: int = Option(-1, "--gpu-id", "-g", help="A GPU; -1 for the CPU"),
) -> None:
    """Write the vectors of a text: all layers of every token of every sentence.

    An interrupted run goes on where it was when it is started again.
    """
    from ..bilm.errors import SourceError
    from ..dump import dump
    from ..pretrain.sentences import read_sentences
    from .reading import load_on, splitter_for

    try:
        bilm = load_on(gpu_id, source)
        splitter = splitter_for(bilm, lang, tokenizer, tokenized)
        n_sentences = dump(bilm, read_sentences([text], splitter), out)
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    msg.good(f"Wrote the vectors of {n_sentences:,} sentences to {out}")
