"""What results are called."""

from typer import Option


def readable(title: str | None) -> str | None:
    """RETURNS (str | None): Spaces for underscores, in a title without spaces: not
    every place that a command is written in can quote them."""
    return title if title is None or " " in title else title.replace("_", " ")


TITLE = Option(
    None,
    "--title",
    callback=readable,
    help="What to call the result; A_title is shown as A title",
)
