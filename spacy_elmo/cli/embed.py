"""`spacy elmo embed`: write the vectors of a text to a file."""

from collections import Counter
from pathlib import Path

from typer import Argument
from wasabi import msg

from . import app
from .common_options import (
    ENCODING,
    GPU_ID,
    LANG,
    SOURCE,
    TEXT,
    TOKENIZED,
    TOKENIZER,
    check_output_file,
    exit_on_error,
    get_tokenization,
    load_on_device,
)


@app.command("embed")
def embed_cli(
    source: Path = SOURCE,
    text: str = TEXT,
    out: Path = Argument(..., help="The .hdf5 or .parquet file to write"),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    encoding: str = ENCODING,
    gpu_id: int = GPU_ID,
) -> None:
    """Write the vectors of a text: all layers of all tokens, sentence by sentence.

    If the command was interrupted, run it again to continue.
    """
    from tqdm import tqdm

    from ..embedding.embed_file import check_target, embed_file
    from ..text.problems import Problems, say_problems
    from ..text.sentences import load_sentences

    problems: Problems = Counter()
    with exit_on_error():
        check_target(out)
        check_output_file(out)
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized, encoding)
        sentences = load_sentences([text], tokenization, problems)
        with tqdm(unit=" sentences", disable=None, leave=False) as bar:
            n_sentences = embed_file(
                bilm,
                sentences,
                out,
                on_progress=lambda n_done: bar.update(n_done - bar.n),
                say=msg.warn,
            )
    say_problems(problems, msg.warn)
    msg.good(f"Wrote the vectors of {n_sentences:,} sentences to {out}")
