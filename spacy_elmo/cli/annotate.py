"""`spacy elmo annotate`: run a pipeline over a corpus."""

from collections import Counter
from functools import partial
from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import (
    CLUSTER,
    ENCODING,
    TEXT,
    WORKERS,
    check_output_folder,
    exit_on_error,
    get_cluster,
)


@app.command("annotate")
def annotate_cli(
    pipeline: str = Argument(
        ...,
        metavar="PIPELINE",
        help="The pipeline: its folder, or the name of an installed package",
    ),
    text: str = TEXT,
    out: Path = Argument(
        ...,
        metavar="OUT",
        callback=check_output_folder,
        help="The folder to write to",
    ),
    attributes: str = Option(
        "",
        "--attributes",
        help="Write these attributes of all tokens, such as lemma,pos,ent_type, "
        "instead of docs",
    ),
    kind: str = Option(
        "parquet", "--format", help="The format of attributes: parquet or jsonl"
    ),
    encoding: str = ENCODING,
    cluster: str | None = CLUSTER,
    workers: int | None = WORKERS,
) -> None:
    """Run a pipeline over a corpus and write its docs as .spacy files, or chosen
    attributes of all tokens.

    If the command was interrupted, run it again to continue.
    """
    from tqdm import tqdm

    from ..annotation.annotate_folder import annotate_folder
    from ..annotation.load_inputs import load_inputs
    from ..text.problems import say_problems

    problems: Counter[str] = Counter()
    with exit_on_error():
        machines = get_cluster(cluster, workers)
        with tqdm(unit=" docs", disable=None, leave=False) as bar:
            made = annotate_folder(
                pipeline,
                partial(load_inputs, text, encoding),
                out,
                attributes=[name for name in attributes.split(",") if name],
                kind=kind,
                cluster=machines,
                problems=problems,
                on_progress=lambda n_done: bar.update(n_done - bar.n),
                say=msg.warn,
            )
    say_problems(problems, msg.warn)
    msg.good(f"Wrote {made['items']:,} docs to {out}")
