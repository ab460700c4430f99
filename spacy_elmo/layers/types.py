"""The types that pass between the layers."""

from collections.abc import Callable
from dataclasses import dataclass

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d


@dataclass
class Layers:
    """The layers that the biLM has computed for some docs.

    data (list[Floats3d]): (n_tokens, n_layers + 1, width) for each doc. Layer 0 has the
        token vectors, and the n_layers layers above it are those of the LSTMs.
    frozen (bool): Whether the biLM is frozen, so that no gradient of the layers is
        needed.
    """

    data: list[Floats3d]
    frozen: bool = True


# Takes the gradients of Layers.data; None if they were not computed.
LayersBackprop = Callable[[list[Floats3d] | None], list[Doc]]
ElmoModelT = Model[list[Doc], Layers]
MixModelT = Model[Layers, list[Floats2d]]
Tok2VecModelT = Model[list[Doc], list[Floats2d]]
