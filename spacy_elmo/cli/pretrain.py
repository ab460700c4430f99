from pathlib import Path

import typer
from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, OVERRIDES, say

STOPPED = 130  # what a shell says of Ctrl-C: who runs this must not take it for done


@app.command("pretrain", context_settings=OVERRIDES)
def pretrain_cli(
    ctx: typer.Context,
    config_path: Path = Argument(..., metavar="CONFIG", help="A pretraining config"),
    output: Path = Option(..., "--output", "-o", help="The folder to write"),
    gpu_id: int = GPU_ID,
    resume: bool = Option(False, "--resume", "-r", help="Go on from a checkpoint"),
) -> None:
    """Train a biLM on raw text.

    Any setting of the config can be given as an option, such as --training.seed 1.
    Writes OUTPUT/model-best and OUTPUT/model-last. Ctrl-C saves and stops, with exit
    code 130; --resume goes on. Under torchrun, several processes train one model.
    """
    import os

    from spacy.cli._util import parse_config_overrides

    from ..bilm.errors import SourceError
    from ..pretrain.pretrain_config import load_config
    from ..pretrain.pretraining import pretrain
    from ..pretrain.ranks import choose_gpu
    from .common_options import get_device

    try:
        device = get_device(choose_gpu(gpu_id, os.environ))
        config = load_config(config_path, parse_config_overrides(ctx.args))
        finished = pretrain(config, output, device=device, resume=resume, say=say)
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    except KeyboardInterrupt:  # while it trains, the trainer looks after it
        say("Stopped while nothing was being trained; give the same command again")
        raise typer.Exit(STOPPED) from None
    if not finished:
        raise typer.Exit(STOPPED)
