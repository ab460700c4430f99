"""The page as HTML."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..about import __version__
from .charts import CONFIG, Spec
from .figures import Figure, Group, Table, language_of
from .load import Results
from .probes import probe
from .summary import summary
from .tasks import compare
from .training import perplexities, pretraining
from .words import neighbors, senses

STYLES = ("colors.css", "page.css", "results.css", "controls.css")


class Section(NamedTuple):
    """short (str): Its title where there is little room."""

    id: str
    short: str
    title: str
    intro: str
    groups: Sequence[Group]
    table: Table | None = None


# Where a result comes from, for those that are missing.
SOURCES = {
    "pretraining": "elmo pretrain CONFIG --output DIR/bilm",
    "perplexity": "elmo evaluate BILM TEXT --output DIR/perplexity.json",
    "probe": "elmo probe BILM TRAIN DEV --output DIR/probe.json",
    "compare": "elmo compare BASELINE ELMO --output DIR/compare",
    "senses": "elmo senses BILM FILE --output DIR/senses.json",
    "neighbors": "elmo neighbors BILM TEXT --query SENTENCE --word WORD "
    "--output DIR/neighbors.json",
}


def sections(results: Results) -> list[Section]:
    """RETURNS (list[Section]): All of them, also those without results."""
    return [
        Section(
            "pretraining",
            "Pretraining",
            "Pretraining",
            "How the language model learned: lower is better for loss and perplexity.",
            [pretraining(found, n) for n, found in enumerate(results.logs)],
        ),
        Section(
            "perplexity",
            "Perplexity",
            "Perplexity",
            "How many words the model hesitates between, on average, given the words "
            "before (forward) or after (backward). Lower is better; texts and "
            "vocabularies differ, so compare only what shares both.",
            [],
            perplexities(results),
        ),
        Section(
            "probe",
            "Layers",
            "What each layer knows",
            "A simple classifier on the vectors of one frozen layer: the share of the "
            "held-out data that it gets right.",
            [probe(found) for found in results.probe],
        ),
        Section(
            "compare",
            "Comparison",
            "With and without ELMo",
            "The same data, seeds and budget. Scores in percent, below them how many "
            "errors there are fewer, or more, than the baseline's.",
            [compare(found, n) for n, found in enumerate(results.compare)],
        ),
        Section(
            "senses",
            "Senses",
            "Words with several senses",
            "Each point is a use of the word, near others with similar vectors; its "
            "colour and shape are its sense. Point at it for the sentence. Found: how "
            "often the nearest other use has the same sense.",
            [senses(found, n) for n, found in enumerate(results.senses)],
        ),
        Section(
            "neighbors",
            "Neighbours",
            "Nearest neighbours",
            "For a word in its sentence, the words in a corpus whose vectors are most "
            "alike.",
            [neighbors(found) for found in results.neighbors],
        ),
    ]


class Charts:
    """Gives charts their places on the page, and collects them."""

    def __init__(self) -> None:
        self.specs: dict[str, Spec] = {}

    def add(self, figure: Figure) -> str:
        """RETURNS (str): The id of its element."""
        name = f"chart-{len(self.specs) + 1}"
        self.specs[name] = figure.spec
        return name


def make_page(results: Results, title: str, bundle: str) -> str:
    """title (str): Of what the report is on.
    bundle (str): JavaScript that defines vegaEmbed.
    """
    environment = Environment(
        loader=PackageLoader("spacy_elmo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    charts = Charts()
    every = sections(results)
    return environment.get_template("page.html").render(
        title=title,
        version=__version__,
        keys=summary(results),
        sections=[each for each in every if each.groups or each.table],
        missing={
            each.title: f"python -m spacy {SOURCES[each.id]}"
            for each in every
            if not each.groups and not each.table
        },
        files=results.files,
        charts=charts,
        config=CONFIG,
        as_script=as_script,
        kind_of=lambda cell: type(cell).__name__,
        language_of=language_of,
        style=Markup("\n".join(map(read_part, STYLES))),
        script=Markup(read_part("page.js")),
        bundle=Markup(inside_script(bundle)),
    )


def read_part(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def as_script(data: Any) -> Markup:
    """RETURNS (Markup): As JSON that nothing in the data can end early."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def inside_script(code: str) -> str:
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
