"""`spacy elmo pretrain`: train a biLM on raw text."""

from pathlib import Path

import typer
from typer import Argument, Option

from . import app
from .common_options import (
    GPU_ID,
    OUTPUT_FOLDER,
    OVERRIDES,
    exit_on_error,
    get_device,
    say,
)

STOPPED = 130  # the usual exit code after Ctrl-C, so that scripts see it is unfinished


@app.command("pretrain", context_settings=OVERRIDES)
def pretrain_cli(
    ctx: typer.Context,
    config: str | None = Argument(
        None,
        metavar="CONFIG",
        help="A pretraining config; by default, one that suits the language (--corpus."
        "lang)",
    ),
    output: Path = OUTPUT_FOLDER,
    gpu_id: int = GPU_ID,
    resume: bool = Option(
        False, "--resume", "-r", help="Continue from the last checkpoint in OUTPUT"
    ),
    overwrite: bool = Option(
        False,
        "--overwrite",
        help="Replace the earlier run in OUTPUT, once this one has saved a checkpoint",
    ),
) -> None:
    """Train a biLM on raw text.

    Any setting of the config can be changed by an option such as --training.seed 1.
    The results are OUTPUT/model-best and OUTPUT/model-last. Ctrl-C saves a checkpoint
    and stops with exit code 130; --resume continues. Under torchrun, several processes
    train one model together. An earlier run in OUTPUT is never replaced without
    --overwrite.
    """
    import os

    from spacy.cli._util import parse_config_overrides

    from ..bilm.extras import require_torch

    with exit_on_error():
        require_torch("pretraining")
    from ..pretrain.pretrain_config import load_config
    from ..pretrain.pretraining import pretrain
    from ..pretrain.ranks import choose_gpu

    try:
        with exit_on_error():
            device = get_device(choose_gpu(gpu_id, os.environ))
            path, args = split_arguments(config, ctx.args)
            settings = load_config(path, parse_config_overrides(args))
            finished = pretrain(
                settings,
                output,
                device=device,
                resume=resume,
                overwrite=overwrite,
                say=say,
            )
    except KeyboardInterrupt:  # during training, the trainer itself handles Ctrl-C
        say("Stopped before training began. Run the same command again.")
        raise typer.Exit(STOPPED) from None
    if not finished:
        raise typer.Exit(STOPPED)


def split_arguments(
    config: str | None, rest: list[str]
) -> tuple[Path | None, list[str]]:
    """Separate the path of the config from the options for its settings.

    typer does not know these options. So without a config it takes the first of them
    for the config.
    """
    if config is not None and config.startswith("--"):
        return None, [config, *rest]
    return None if config is None else Path(config), rest
