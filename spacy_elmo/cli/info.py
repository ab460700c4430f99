"""`spacy elmo info`: print the sizes of a biLM, or what a pipeline has learned."""

from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument
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
        help="A biLM (a folder, an HDF5 file, or the name of a bundled one), or a "
        "pipeline (a folder, or the name of an installed package)",
    ),
) -> None:
    """Print the sizes of a biLM and how it was trained.

    For a pipeline, also print the weights of the layers (s_j) and the scale (gamma)
    that each of its components has learned.
    """
    from ..bilm.formats.sources import load_data

    if is_pipeline(source):
        import spacy

        try:
            nlp = spacy.load(source)
        except (OSError, ValueError, ImportError, TypeError, AttributeError) as error:
            # An installed package that is not a pipeline has no `load`, or a `load` for
            # something else.
            msg.fail(f"{source}: cannot be loaded as a pipeline: {error}", exits=1)
        return print_pipeline(source, nlp)
    with exit_on_error():
        data = load_data(source)
    print_bilm(source, data)


def is_pipeline(source: str) -> bool:
    from spacy.util import is_package

    path = Path(source)
    if path.exists():
        return (path / "meta.json").exists() and (path / "config.cfg").exists()
    return is_package(source)


def print_bilm(title: str, bilm: "BiLMData") -> None:
    config = bilm.config.to_dict()
    n_weights = sum(array.size for array in bilm.arrays.values())
    msg.divider(title)
    msg.table(
        {
            "weights": f"{n_weights:,}",
            "layers": f"{bilm.config.lstm.n_layers} + 1 (layer 0: no context)",
            "width": bilm.config.width,
            "known characters": len(bilm.lexicon.characters) or "-",
            "known words": len(bilm.lexicon.words) or "-",
            "words it can predict": (config["softmax"] or {}).get("n_words", "-"),
        }
    )
    for section in ("encoder", "lstm", "softmax", "training"):
        if config[section]:
            msg.divider(section)
            msg.table({key: str(value) for key, value in config[section].items()})


def print_pipeline(title: str, nlp: "Language") -> None:
    from ..layers.elmo_model import get_shim
    from ..pipeline.component import Elmo
    from ..pipeline.mixes import find_mixes

    components = [(n, pipe) for n, pipe in nlp.components if isinstance(pipe, Elmo)]
    mixes = list(find_mixes(nlp))
    if not components and not mixes:
        msg.fail(
            f"{title}: found a pipeline without 'elmo'; expected one with it", exits=1
        )
    for name, pipe in components:
        print_bilm(f"{title}: {name}", get_shim(pipe.model).bilm.data)
    if not mixes:
        msg.info("No component of this pipeline uses the layers.")
        return
    msg.divider("learned weights of the layers, from layer 0 to the top")
    rows = [
        (task, " ".join(f"{share:.3f}" for share in shares), f"{gamma:.3f}")
        for task, shares, gamma in mixes
    ]
    msg.table(rows, header=("component", "s_j", "gamma"), divider=True)
