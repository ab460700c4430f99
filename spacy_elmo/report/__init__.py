"""One HTML page of the results in a folder."""

from pathlib import Path

from .load import find_results
from .page import make_page


def write_report(folder: Path, output: Path) -> list[str]:
    """Write the page. The same files give the same bytes.

    RETURNS (list[str]): A sentence for each file that was skipped.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; expected one with results")
    results = find_results(folder)
    if not results.files:
        skipped = "".join(f"; skipped {reason}" for reason in results.skipped[:3])
        raise ValueError(
            f"{folder}: found no results; expected what `spacy elmo pretrain`, "
            f"`evaluate`, `probe`, `neighbors` and the like write{skipped}"
        )
    page = make_page(results, folder.resolve().name, load_bundle())
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page, encoding="utf-8", newline="\n")
    return results.skipped


def load_bundle() -> str:
    """RETURNS (str): JavaScript that draws charts in Vega-Lite."""
    try:
        import vl_convert
    except ImportError:
        raise ValueError(
            "the charts need vl-convert-python: pip install 'spacy-elmo[report]'"
        ) from None
    return vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;")
