"""`spacy elmo compare`: train pipelines with and without ELMo, and compare them."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import typer
from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import (
    GPU_ID,
    OUTPUT_FOLDER,
    OVERRIDES,
    TITLE,
    exit_on_error,
    get_device,
    say,
)

ValueT = TypeVar("ValueT")


@app.command("compare", context_settings=OVERRIDES)
def compare_cli(
    ctx: typer.Context,
    baseline: Path = Argument(
        ..., metavar="BASELINE", help="A training config without ELMo"
    ),
    elmo: Path = Argument(..., metavar="ELMO", help="The same config with ELMo"),
    output: Path = OUTPUT_FOLDER,
    title: str | None = TITLE,
    variants: str | None = Option(
        None,
        "--variants",
        help="The variants to train, separated by commas: some of baseline, vectors, "
        "last, mean, mix-1, mix-0.001, output, whole, both; by default all of them, "
        "but vectors only with --paths.vectors, and whole only if the config with ELMo "
        "has a smaller CNN",
    ),
    seeds: str = Option(
        "0,1,2", "--seeds", help="Each variant is trained once with each of these seeds"
    ),
    shares: str = Option(
        "1",
        "--shares",
        help="Also train with a part of the training data: 1,0.1 means with all of it "
        "and with a tenth",
    ),
    share_variants: str | None = Option(
        None,
        "--share-variants",
        help="The variants that are also trained with less data; by default, baseline "
        "and mix-0.001 or, without mix-0.001, the last variant with ELMo",
    ),
    n_process: int = Option(
        1, "--n-process", help="How many trainings run at the same time"
    ),
    keep: str = Option(
        "first",
        "--keep",
        help="Which trained pipelines to keep: all, first (those of the first seed) or "
        "none",
    ),
    gpu_id: int = GPU_ID,
) -> None:
    """Train a pipeline without ELMo and with ELMo in several variants, and compare.

    All variants get the same data, the same seeds and the same number of steps. Any
    setting of the configs can be changed by an option such as --paths.train
    train.spacy, which applies to both. The results are OUTPUT/compare.json and
    OUTPUT/compare.md. If the command was interrupted, run it again to continue.
    Trainings are repeated only if their config, data, biLM or installed vectors have
    changed, or the version of spaCy or Thinc or, with ELMo, of spacy-elmo or torch.
    """
    from spacy.cli._util import parse_config_overrides

    from ..compare.comparison import Comparison
    from ..compare.config_pair import ConfigPair
    from ..compare.options import Options

    try:
        with exit_on_error():
            get_device(gpu_id)  # fails at once if there is no such GPU
            options = Options(
                title=title or "",
                variants=split_list(variants, "variants", str),
                seeds=split_list(seeds, "seeds", int) or [],
                shares=split_list(shares, "shares", float) or [],
                share_variants=split_list(share_variants, "share-variants", str),
                n_process=n_process,
                keep=keep,
                gpu_id=gpu_id,
            )
            pair = ConfigPair(baseline, elmo, parse_config_overrides(ctx.args))
            Comparison(pair, options, output, say).compare()
    except KeyboardInterrupt:
        msg.fail("Stopped. Run the same command again to continue.", exits=1)


def split_list(
    text: str | None, name: str, kind: Callable[[str], ValueT]
) -> list[ValueT] | None:
    """Split the value of the option `name` at its commas. Return None for None."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(
            f"found --{name} {text!r}; expected numbers separated by commas"
        ) from None
