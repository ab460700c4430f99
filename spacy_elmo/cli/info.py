"""`spacy elmo info`: print the sizes of a biLM, or what a pipeline has learned."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import exit_on_error

if TYPE_CHECKING:
    from spacy.language import Language

    from ..bilm import BiLMData


@app.command("info")
def info_cli(
    source: str = Argument(
        ...,
        metavar="BILM_OR_PIPELINE",
        help="A biLM (a folder, an HDF5 file, or the name of a bundled one), or a "
        "pipeline (a folder, or the name of an installed package)",
    ),
    as_json: bool = Option(False, "--json", help="Print JSON, for programs"),
) -> None:
    """Print the sizes of a biLM and how it was trained.

    For a pipeline, also print the weights of the layers (s_j) and the scale (gamma)
    that each of its components has learned.
    """
    from ..bilm.formats.sources import load_data

    with exit_on_error():
        if is_pipeline(source):
            import spacy

            try:
                nlp = spacy.load(source)
            except Exception as error:
                # spaCy raises many kinds of errors, and an installed package that is
                # not a pipeline has no `load`, or a `load` for something else.
                reason = " ".join(str(error).split())
                msg.fail(f"{source}: cannot be loaded as a pipeline: {reason}", exits=1)
            found = describe_pipeline(source, nlp)
        else:
            found = {"bilms": {source: describe_bilm(load_data(source))}}
        if as_json:
            print(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            print_for_people(found)


def is_pipeline(source: str) -> bool:
    from spacy.util import is_package

    path = Path(source)
    if path.exists():
        return (path / "meta.json").exists() and (path / "config.cfg").exists()
    return is_package(source)


def describe_bilm(bilm: "BiLMData") -> dict[str, Any]:
    config = bilm.config.to_dict()
    return {
        "weights": sum(array.size for array in bilm.arrays.values()),
        "layers": bilm.config.lstm.n_layers + 1,
        "width": bilm.config.width,
        "known_characters": len(bilm.lexicon.characters),
        "known_words": len(bilm.lexicon.words),
        **{key: config[key] for key in ("encoder", "lstm", "softmax", "training")},
    }


def describe_pipeline(title: str, nlp: "Language") -> dict[str, Any]:
    """Describe the biLMs of a pipeline ("bilms") and the mixes that its components have
    learned ("mixes")."""
    from ..layers.elmo_model import get_shim
    from ..pipeline.component import Elmo
    from ..pipeline.mixes import find_mixes

    components = [(n, pipe) for n, pipe in nlp.components if isinstance(pipe, Elmo)]
    mixes = list(find_mixes(nlp))
    if not components and not mixes:
        msg.fail(
            f"{title}: found a pipeline without 'elmo'; expected one with it", exits=1
        )
    return {
        "bilms": {
            f"{title}: {name}": describe_bilm(get_shim(pipe.model).bilm.data)
            for name, pipe in components
        },
        "mixes": [
            {"component": task, "weights": shares, "gamma": gamma}
            for task, shares, gamma in mixes
        ],
    }


def print_for_people(found: dict[str, Any]) -> None:
    for title, bilm in found["bilms"].items():
        msg.divider(title)
        softmax = bilm["softmax"] or {}
        msg.table(
            {
                "weights": f"{bilm['weights']:,}",
                "layers": f"{bilm['layers'] - 1} + 1 (layer 0: no context)",
                "width": bilm["width"],
                "known characters": bilm["known_characters"] or "-",
                "known words": bilm["known_words"] or "-",
                "words it can predict": format_value(softmax.get("n_words", "-")),
            }
        )
        for section in ("encoder", "lstm", "softmax", "training"):
            if bilm[section]:
                msg.divider(section)
                msg.table(flatten(bilm[section]))
    if found.get("mixes"):
        msg.divider("learned weights of the layers, from layer 0 to the top")
        rows = [
            (
                mix["component"],
                " ".join(f"{share:.3f}" for share in mix["weights"]),
                f"{mix['gamma']:.3f}",
            )
            for mix in found["mixes"]
        ]
        msg.table(rows, header=("component", "s_j", "gamma"), divider=True)
    elif "mixes" in found:
        msg.info("No component of this pipeline uses the layers.")


def flatten(values: dict[str, Any], before: str = "") -> dict[str, str]:
    """Return a line for each value, including the values of inner dicts."""
    lines: dict[str, str] = {}
    for key, value in values.items():
        name = before + key.replace("_", " ")
        if isinstance(value, dict):
            lines.update(flatten(value, f"{name}, "))
        elif value is not None:
            lines[name] = format_value(value)
    return lines


def format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if type(value) is int else str(value)
