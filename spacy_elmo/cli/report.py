"""`spacy elmo report`: make an HTML page of all results."""

from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import check_output_file, exit_on_error, keep_others


@app.command("report")
def report_cli(
    folder: Path = Argument(..., metavar="DIR", help="A folder with results"),
    output: Path | None = Option(
        None,
        "--output",
        "-o",
        callback=check_output_file,
        help="The HTML file to write; by default, DIR/report.html",
    ),
) -> None:
    """Make one HTML page of all results in a folder and its subfolders.

    It shows whatever the other commands have written there: logs of pretraining,
    perplexities, probes, comparisons, senses and neighbours, and the scores that
    `spacy evaluate` has written. The page is a single file
    and needs no network connection. Files that cannot be shown are named.
    """
    from ..report import write_report

    output = output or folder / "report.html"
    keep_others(output, '<meta name="generator" content="spacy-elmo')
    with exit_on_error():
        results = write_report(folder, output)
    for reason in results.skipped:
        msg.warn(f"Skipped {reason}")
    if results.passed_over:
        msg.info(f"No results in {', '.join(results.passed_over)}")
    msg.good(f"Wrote {output}")
