"""From `elmo` to the components that learn from the same docs in the same step."""

from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats3d

from ..layers.types import Layers, LayersBackprop


class HandOver:
    """The layers of a batch of docs, for any number of listeners, each of which may
    take some of the docs, in any order.

    docs (list[Doc]): The docs.
    layers (Layers): Their layers.
    backprop (LayersBackprop): Takes the sum of all listeners' gradients.
    """

    def __init__(
        self, docs: list[Doc], layers: Layers, backprop: LayersBackprop
    ) -> None:
        # An id is only good for as long as the doc lives.
        self._docs = docs
        self._numbers = {id(doc): number for number, doc in enumerate(docs)}
        self._layers = layers
        self._backprop = backprop
        self._gradients: dict[int, Floats3d] = {}
        self.taken = False

    def has(self, docs: list[Doc]) -> bool:
        return all(id(doc) in self._numbers for doc in docs)

    def take(self, docs: list[Doc]) -> tuple[Layers, LayersBackprop]:
        """What a listener gets for docs of the batch."""
        self.taken = True
        numbers = [self._numbers[id(doc)] for doc in docs]

        def accumulate(gradients: list[Floats3d] | None) -> list[Doc]:
            for number, gradient in zip(numbers, gradients or []):
                if number in self._gradients:
                    self._gradients[number] = self._gradients[number] + gradient
                else:
                    self._gradients[number] = gradient
            return []

        data = [self._layers.data[number] for number in numbers]
        return Layers(data, self._layers.frozen), accumulate

    def finish(self) -> float:
        """Pass on the gradients that came in. RETURNS (float): Their squared norm."""
        if not self._gradients:
            return 0.0
        gradients: list[Any] = [
            self._gradients[number] if number in self._gradients else 0 * layers
            for number, layers in enumerate(self._layers.data)
        ]
        self._gradients = {}
        self._backprop(gradients)
        return float(sum((gradient**2).sum() for gradient in gradients))
