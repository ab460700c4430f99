"""Pass the layers of a training batch from `elmo` to its listeners, and the gradients
of the listeners back to `elmo`."""

from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.types import Floats3d

from ..layers.types import Layers, LayersBackprop


class HandOver:
    """The layers of a batch of docs, for any number of listeners. Each listener may
    take some of the docs, in any order.

    docs (list[Doc]): The docs.
    layers (Layers): The layers of the docs.
    backprop (LayersBackprop): Called with the sum of all listeners' gradients,
        (n_tokens, n_layers + 1, width) for each doc.
    """

    def __init__(
        self, docs: list[Doc], layers: Layers, backprop: LayersBackprop
    ) -> None:
        # Keep the docs alive: the id of a deleted doc may be given to another one.
        self._docs = docs
        self._numbers = {id(doc): number for number, doc in enumerate(docs)}
        # A component that annotates in training may retokenize a doc.
        self._words = [doc.to_array("ORTH") for doc in docs]
        self._layers = layers
        self._backprop = backprop
        self._gradients: dict[int, Floats3d] = {}
        self.taken = False

    def has(self, docs: list[Doc]) -> bool:
        """Return whether all docs are in the batch, with the same tokens."""
        numbers = [self._numbers.get(id(doc)) for doc in docs]
        return all(
            number is not None
            and np.array_equal(self._words[number], doc.to_array("ORTH"))
            for number, doc in zip(numbers, docs)
        )

    def take(self, docs: list[Doc]) -> tuple[Layers, LayersBackprop]:
        """Return the layers of some docs of the batch, and a callback that adds up
        their gradients."""
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
        """Backpropagate the gradients of all listeners, and return their squared
        norm."""
        if not self._gradients:
            return 0.0
        gradients: list[Any] = [
            self._gradients[number] if number in self._gradients else 0 * layers
            for number, layers in enumerate(self._layers.data)
        ]
        self._gradients = {}
        self._backprop(gradients)
        return float(sum((gradient**2).sum() for gradient in gradients))
