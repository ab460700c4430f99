"""What passes between the layers."""

from dataclasses import dataclass
from typing import Callable, List, Optional

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d


@dataclass
class Layers:
    """The biLM's layers of some docs: (n_tokens, n_layers + 1, width) for each.

    frozen (bool): Nobody wants the gradient of them.
    """

    data: List[Floats3d]
    frozen: bool = True


# The gradient of Layers, in the same form; None if nobody wanted it.
LayersBackprop = Callable[[Optional[List[Floats3d]]], List[Doc]]
ElmoModelT = Model[List[Doc], Layers]
MixModelT = Model[Layers, List[Floats2d]]
Tok2VecModelT = Model[List[Doc], List[Floats2d]]
