"""Write reports of sample files, and read them as trees of HTML elements."""

import json

from helpers import report_samples as samples
from helpers.html_tree import parse
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.report import write_report

# For the id of each section of a report, a function that writes a sample file for it.
WRITERS = {
    "pretraining": lambda folder: samples.write_log(folder / "log.jsonl"),
    "perplexity": lambda folder: samples.write(
        folder / "p.json", samples.perplexity(9)
    ),
    "probe": lambda folder: samples.write(folder / "p.json", samples.probe()),
    "compare": lambda folder: samples.write(folder / "c.json", samples.compare()),
    "scores": lambda folder: samples.write(folder / "metrics.json", samples.scores()),
    "senses": lambda folder: samples.write(folder / "s.json", samples.senses("ko")),
    "neighbors": lambda folder: samples.write(folder / "n.json", samples.neighbors()),
}


def make_report(folder):
    """Write the report of a folder, and return the root of its HTML tree."""
    write_report(folder, folder / "report.html")
    return parse((folder / "report.html").read_text(encoding="utf-8"))


def run_report(*args):
    """Run `spacy elmo report` in this process."""
    return CliRunner().invoke(app, ["report", *map(str, args)])


def printed(done):
    return " ".join(done.output.split())


def find_charts(root):
    """Map the id of each chart of a page to its Vega-Lite specification."""
    (script,) = root.find("script", id="charts")
    return json.loads("".join(script.parts))["specs"]


def find_section(root, name):
    (found,) = root.find("section", id=name)
    return found


def read_cells(table):
    """Return the texts of the cells in each row. The text of a <small> element is on a
    separate line."""
    rows = [row.find("th") + row.find("td") for row in table.find("tr")]
    return [[_read_cell(cell) for cell in row] for row in rows]


def _read_cell(cell):
    small = [part.text for part in cell.find("small")]
    return "\n".join([cell.text.removesuffix("".join(small)), *small])
