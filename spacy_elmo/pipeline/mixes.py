"""Find the learned mixes of a pipeline's components."""

from collections.abc import Iterator

from spacy.language import Language
from thinc.api import Model

from ..layers.mix import NAME, get_mix


def find_mixes(nlp: Language) -> Iterator[tuple[str, list[float], float]]:
    """Find all ElmoMix layers in a pipeline.

    YIELDS (tuple[str, list[float], float]): The name of the component, the weights s_j,
        (n_layers + 1,), and the scale gamma. A Tok2VecWithElmo may have two mixes: for
        its mixes, "(input)" or "(output)" is added to the name.
    """
    for name, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model):
            continue
        places = {}
        for node in model.walk():
            for place in ("input", "output"):
                if node.has_ref(f"{place}_mix"):
                    places[node.get_ref(f"{place}_mix").id] = f"{name} ({place})"
        for node in model.walk():
            if node.name == NAME:
                yield (places.get(node.id, name), *get_mix(node))
