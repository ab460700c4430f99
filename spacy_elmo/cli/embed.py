"""`spacy elmo embed`: write the vectors of a text to a file."""

from collections import Counter
from functools import partial
from pathlib import Path

from typer import Argument
from wasabi import msg

from . import app
from .common_options import (
    BILM,
    CLUSTER,
    ENCODING,
    GPU_ID,
    LANG,
    TEXT,
    TOKENIZED,
    TOKENIZER,
    WORKERS,
    check_output_file,
    check_output_folder,
    exit_on_error,
    get_cluster,
    get_tokenization,
    load_on_device,
)


@app.command("embed")
def embed_cli(
    source: Path = BILM,
    text: str = TEXT,
    out: Path = Argument(
        ...,
        metavar="OUT",
        help="The .hdf5 or .parquet file to write; with --cluster, the folder to write "
        "Parquet files to",
    ),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    encoding: str = ENCODING,
    gpu_id: int = GPU_ID,
    cluster: str | None = CLUSTER,
    workers: int | None = WORKERS,
) -> None:
    """Write the vectors of a text: all layers of all tokens, sentence by sentence.

    If the command was interrupted, run it again to continue.
    """
    from tqdm import tqdm

    from ..embedding.embed_file import check_target, embed_file
    from ..embedding.embed_folder import check_folder_target, embed_folder
    from ..text.problems import Problems, say_problems
    from ..text.sentences import load_sentences

    problems: Problems = Counter()
    with exit_on_error():
        machines = get_cluster(cluster, workers, gpu_id)
        if machines is None:
            check_target(out)
            check_output_file(out)
        else:
            check_folder_target(out)
            check_output_folder(out)
        bilm = load_on_device(source, gpu_id)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized, encoding)
        load = partial(load_sentences, [text], tokenization)
        with tqdm(unit=" sentences", disable=None, leave=False) as bar:

            def on_progress(n_done: int) -> None:
                bar.update(n_done - bar.n)

            if machines is None:
                n_sentences = embed_file(
                    bilm, load(problems), out, on_progress=on_progress, say=msg.warn
                )
            else:
                manifest = embed_folder(
                    bilm,
                    load,
                    out,
                    machines,
                    problems=problems,
                    on_progress=on_progress,
                    say=msg.warn,
                )
                n_sentences = manifest["items"]
    say_problems(problems, msg.warn)
    msg.good(f"Wrote the vectors of {n_sentences:,} sentences to {out}")
