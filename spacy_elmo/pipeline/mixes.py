"""Find the learned mixes of a pipeline's components."""

from collections.abc import Iterator

from spacy.language import Language
from thinc.api import Model

from ..layers.mix import NAME, get_mix


def find_mixes(nlp: Language) -> Iterator[tuple[str, list[float], float]]:
    """Find every mix of a pipeline.

    YIELDS: The name of the task, its s_j and its gamma; a component with ELMo in two
        places has two.
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
