from pathlib import Path

import typer
from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import OVERRIDES


@app.command("assets", context_settings=OVERRIDES)
def assets_cli(
    ctx: typer.Context,
    project: Path = Argument(Path("."), metavar="[DIR]", help="With a project.yml"),
    extra: bool = Option(False, "--extra", "-e", help="The large ones too"),
) -> None:
    """Fetch the assets of a project, as `spacy project assets` does, with one sentence
    where there is no network. Variables can be given as --vars.NAME VALUE."""
    from subprocess import SubprocessError

    from spacy.cli._util import parse_config_overrides
    from weasel.cli.assets import project_assets

    overrides = parse_config_overrides(ctx.args)
    try:
        project_assets(project, overrides=overrides, extra=extra)
    except (SubprocessError, OSError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        msg.fail(
            "An asset could not be fetched. Is there a network? If not, put the data "
            "where project.yml says under 'assets' by other means; the project's own "
            f"sample data need nothing. ({lines[-1][:300] if lines else error!r})",
            exits=1,
        )
