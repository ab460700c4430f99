"""Make the HTML page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..about import __version__
from .charts.base import CONFIG, Spec
from .formatting import guess_language
from .load import Results
from .page_parts import Figure, Group, Table
from .sections.comparison_section import make_comparison_group
from .sections.neighbors_section import make_neighbors_group
from .sections.perplexity_section import make_perplexity_table
from .sections.pretraining_section import make_pretraining_group
from .sections.probe_section import make_probe_group
from .sections.scores_section import make_scores_table
from .sections.senses_section import make_senses_group
from .sections.summary_section import make_summary

STYLES = ("colors.css", "base.css", "page.css", "results.css", "controls.css")


class Section(NamedTuple):
    """A section of the page.

    id (str): The id of its HTML element.
    short (str): Its title in the navigation.
    table (Table | None): A table above the groups.
    """

    id: str
    short: str
    title: str
    intro: str
    groups: Sequence[Group]
    table: Table | None = None


# The command that makes the results of each section. The page shows the commands of
# those sections that have no results.
COMMANDS = {
    "pretraining": "elmo pretrain CONFIG --output DIR/bilm",
    "perplexity": "elmo evaluate BILM TEXT --output DIR/perplexity.json",
    "probe": "elmo probe BILM TRAIN DEV --output DIR/probe.json",
    "compare": "elmo compare BASELINE ELMO --output DIR/compare",
    "scores": "evaluate PIPELINE TEST --output DIR/NAME/metrics.json",
    "senses": "elmo senses BILM FILE --output DIR/senses.json",
    "neighbors": "elmo neighbors BILM TEXT --query SENTENCE --word WORD "
    "--output DIR/neighbors.json",
}


def make_sections(results: Results) -> list[Section]:
    """Make all sections, including those without results."""
    return [*_pipeline_sections(results), *_bilm_sections(results)]


def _pipeline_sections(results: Results) -> list[Section]:
    return [
        Section(
            "compare",
            "Comparison",
            "With and without ELMo",
            "Pipelines trained with the same data, random seeds and number of steps. "
            "Scores are in percent; below them, how many fewer or more errors than "
            "without ELMo. A dependency is right if the word that it depends on is "
            "right (UAS) and, if labelled, also the kind of dependency (LAS). "
            "F-scores are high if most of what is found is right and most of what is "
            "there is found.",
            [
                make_comparison_group(found, n)
                for n, found in enumerate(results.compare)
            ],
        ),
        Section(
            "scores",
            "Pipelines",
            "Scores of trained pipelines",
            "Measured by spaCy's own command, evaluate. The project measures on a "
            "test part: sentences that were not used to train or to choose a pipeline.",
            [],
            make_scores_table(results),
        ),
    ]


def _bilm_sections(results: Results) -> list[Section]:
    return [
        Section(
            "senses",
            "Senses",
            "Words with several senses",
            "Each point is an occurrence of the word, near others with similar "
            "vectors. Colour and shape show its sense; point at it for the sentence. "
            "Accuracy: how often the nearest other occurrence has the same sense.",
            [make_senses_group(found, n) for n, found in enumerate(results.senses)],
        ),
        Section(
            "probe",
            "Layers",
            "What each layer knows",
            "The accuracy of a simple classifier that sees only the vectors of one "
            "frozen layer, on data that it was not trained with.",
            [make_probe_group(found) for found in results.probe],
        ),
        Section(
            "neighbors",
            "Neighbours",
            "Nearest neighbours",
            "For a word in its sentence, the words in a corpus with the most similar "
            "vectors, in their sentences.",
            [make_neighbors_group(found) for found in results.neighbors],
        ),
        Section(
            "pretraining",
            "Pretraining",
            "Pretraining",
            "How the language model learned. For loss and perplexity, lower is better.",
            [make_pretraining_group(found, n) for n, found in enumerate(results.logs)],
        ),
        Section(
            "perplexity",
            "Perplexity",
            "Perplexity",
            "Between how many words the model hesitates on average, given the words "
            "before (forward) or after (backward). Lower is better. Compare only "
            "results for the same text and the same vocabulary.",
            [],
            make_perplexity_table(results),
        ),
    ]


class Charts:
    """Collects the charts of the page.

    specs (dict[str, Spec]): For the id of each chart's HTML element, the chart.
    """

    def __init__(self) -> None:
        self.specs: dict[str, Spec] = {}

    def add(self, figure: Figure) -> str:
        """Add a chart, and return the id of its HTML element."""
        id = f"chart-{len(self.specs) + 1}"
        self.specs[id] = figure.spec
        return id


def make_title(results: Results, name: str) -> str:
    """Say what the results are about.

    name (str): The name of their folder.
    """
    if results.compare:
        return f"spaCy with and without ELMo: {name}"
    if results.logs or results.perplexity:
        return f"A language model for ELMo: {name}"
    if results.scores:
        return f"spaCy with ELMo: {name}"
    return f"What ELMo knows about words: {name}"


def make_page(results: Results, name: str, vega: str) -> str:
    """Make the page.

    name (str): The name of the folder of the results.
    vega (str): JavaScript that defines vegaEmbed.
    """
    environment = Environment(
        loader=PackageLoader("spacy_elmo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    charts = Charts()
    every = make_sections(results)
    return environment.get_template("page.html").render(
        title=make_title(results, name),
        version=__version__,
        summary=make_summary(results),
        sections=[each for each in every if each.groups or each.table],
        missing={
            each.title: f"python -m spacy {COMMANDS[each.id]}"
            for each in every
            if not each.groups and not each.table
        },
        files=results.files,
        charts=charts,
        config=CONFIG,
        to_script=to_script,
        kind_of=lambda cell: type(cell).__name__,
        guess_language=guess_language,
        style=Markup("\n".join(map(read_template, STYLES))),
        script=Markup(read_template("page.js")),
        vega=Markup(escape_script(vega)),
    )


def read_template(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def to_script(data: Any) -> Markup:
    """Convert data to JSON for a script element. Every "<" is escaped, so that no text
    in the data can close the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def escape_script(code: str) -> str:
    """Escape everything in the code that would close its script element or begin an
    HTML comment."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
