"""`spacy elmo assets`: download the public data of a project."""

from pathlib import Path

import typer
from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import OVERRIDES, exit_on_error


@app.command("assets", context_settings=OVERRIDES)
def assets_cli(
    ctx: typer.Context,
    project: Path = Argument(
        Path("."), metavar="DIR", help="The folder that contains project.yml"
    ),
    extra: bool = Option(
        False, "--extra", "-e", help="Also download the assets marked as extra"
    ),
) -> None:
    """Download the assets of a project, as `spacy project assets` does.

    Without a network connection, it exits with a clear message. Variables of the
    project can be set with --vars.NAME VALUE.
    """
    from subprocess import SubprocessError

    from spacy.cli._util import parse_config_overrides
    from weasel.cli.assets import project_assets

    with exit_on_error():
        overrides = parse_config_overrides(ctx.args)
        try:
            project_assets(project, overrides=overrides, extra=extra)
        except (SubprocessError, OSError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            msg.fail(
                "An asset could not be downloaded. Is there a network connection? If "
                "not, copy the data to the place that project.yml gives under "
                "'assets'. The sample data of the project needs no download. "
                f"({lines[-1][:300] if lines else error!r})",
                exits=1,
            )
