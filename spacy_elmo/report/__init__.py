"""Make one HTML page of the results in a folder."""

from pathlib import Path

from ..files import explain_errors, write_atomically
from .load import Results, load_results
from .page import make_page


def write_report(folder: Path, output: Path) -> Results:
    """Write the page. The same result files always give exactly the same page.

    folder (Path): A folder with results.
    output (Path): The HTML file to write.
    RETURNS (Results): What was found in the folder, and what was skipped.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; expected one with results")
    results = load_results(folder)
    if not results.files:
        skipped = "".join(f"; skipped {reason}" for reason in results.skipped[:3])
        raise ValueError(
            f"{folder}: found no results; expected what `spacy elmo pretrain`, "
            f"`evaluate`, `probe`, `neighbors` and the like write{skipped}"
        )
    page = make_page(results, folder.resolve().name, load_vega())
    with explain_errors(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    contents = page.encode("utf-8", "replace")  # names of files may be any bytes
    write_atomically(output, lambda part: part.write_bytes(contents))
    return results


def load_vega() -> str:
    """Return JavaScript that defines vegaEmbed, the function that draws the charts."""
    try:
        import vl_convert
    except ImportError:
        raise ValueError(
            "the charts need vl-convert-python: pip install 'spacy-elmo[report]'"
        ) from None
    return vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;")
