from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app


@app.command("report")
def report_cli(
    folder: Path = Argument(..., metavar="DIR", help="A folder with results"),
    output: Path | None = Option(
        None, "--output", "-o", help="HTML to write; by default, DIR/report.html"
    ),
) -> None:
    """Make one HTML page of all results in a folder.

    It takes what the other commands write: logs of pretraining, perplexities, probes,
    comparisons, senses, neighbours. The page needs no network and no other file.
    """
    from ..report import write_report

    output = output or folder / "report.html"
    try:
        results = write_report(folder, output)
    except (ValueError, OSError) as error:
        msg.fail(f"{error}", exits=1)
    for reason in results.skipped:
        msg.warn(f"Skipped {reason}")
    if results.passed_over:
        msg.info(f"No results in {', '.join(results.passed_over)}")
    msg.good(f"{output}")
