from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import typer
from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, OVERRIDES, TITLE, say

ValueT = TypeVar("ValueT")


@app.command("compare", context_settings=OVERRIDES)
def compare_cli(
    ctx: typer.Context,
    baseline: Path = Argument(..., metavar="BASELINE", help="A config of spaCy's CNN"),
    elmo: Path = Argument(..., metavar="ELMO", help="The same with ELMo"),
    output: Path = Option(..., "--output", "-o", help="The folder to write"),
    title: str | None = TITLE,
    variants: str | None = Option(
        None,
        "--variants",
        help="Some of baseline,vectors,last,mean,mix-1,mix-0.001,output,whole,both; by "
        "default all. --paths.vectors adds vectors to them",
    ),
    seeds: str = Option("0,1,2", "--seeds", help="Each variant is trained with each"),
    shares: str = Option("1", "--shares", help="Of the training data, as 1,0.1,0.01"),
    share_variants: str | None = Option(
        None,
        "--share-variants",
        help="Which run with less than all data; by default baseline,mix-0.001",
    ),
    n_process: int = Option(1, "--n-process", help="Trainings at a time"),
    keep: str = Option(
        "first", "--keep", help="Trained pipelines: all, first (seed) or none"
    ),
    gpu_id: int = GPU_ID,
) -> None:
    """Train a pipeline without ELMo and with it in several ways, and compare.

    Same data, same seeds, same budget. Settings can be given as options, such as
    --paths.train train.spacy; they go to both configs. Writes OUTPUT/compare.json and
    compare.md. The same command goes on where it was stopped.
    """
    from spacy.cli._util import parse_config_overrides

    from ..bilm.errors import SourceError
    from ..compare.comparison import Comparison
    from ..compare.config_pair import ConfigPair
    from ..compare.options import Options
    from .common_options import get_device

    try:
        get_device(gpu_id)
        options = Options(
            title=title or "",
            variants=None if variants is None else split(variants, "variants", str),
            seeds=split(seeds, "seeds", int),
            shares=split(shares, "shares", float),
            share_variants=None
            if share_variants is None
            else split(share_variants, "share-variants", str),
            n_process=n_process,
            keep=keep,
            gpu_id=gpu_id,
        )
        pair = ConfigPair(baseline, elmo, parse_config_overrides(ctx.args))
        Comparison(pair, options, output, say).compare()
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    except KeyboardInterrupt:
        msg.fail("Stopped; the same command goes on from here", exits=1)


def split(text: str, name: str, kind: Callable[[str], ValueT]) -> list[ValueT]:
    """RETURNS (list[ValueT]): What is between commas."""
    try:
        return [kind(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"--{name} is {text!r}; expected numbers, as 0,1") from None
