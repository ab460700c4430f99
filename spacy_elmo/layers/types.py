"""What passes between the layers."""

from collections.abc import Callable
from dataclasses import dataclass

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d


@dataclass
class Layers:
    """The biLM's layers of some docs: (n_tokens, n_layers + 1, width) for each.

    frozen (bool): Nobody wants the gradient of them.
    """

    data: list[Floats3d]
    frozen: bool = True


# The gradient of Layers, in the same form; None if nobody wanted it.
LayersBackprop = Callable[[list[Floats3d] | None], list[Doc]]
ElmoModelT = Model[list[Doc], Layers]
MixModelT = Model[Layers, list[Floats2d]]
Tok2VecModelT = Model[list[Doc], list[Floats2d]]
