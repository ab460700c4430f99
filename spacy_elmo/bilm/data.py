"""The data of a model: what files hold and engines compute with."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .config import BiLMConfig
from .lexicon import Lexicon

SOFTMAX = "softmax."  # the names of the softmax's arrays begin with this


@dataclass
class BiLMData:
    """A config with named arrays.

    arrays (dict[str, np.ndarray]): The weights, float32, with the names and shapes of
        expected_shapes.
    vocab (Sequence[str] | None): The words of the softmax, in order.
    stored (dict[str, np.ndarray]): The arrays that were loaded in fewer bits, as
        formats.quantize describes them. An array that still has the value of its
        stored form is saved in that form.
    """

    config: BiLMConfig
    arrays: dict[str, np.ndarray]
    lexicon: Lexicon = field(default_factory=Lexicon)
    vocab: Sequence[str] | None = None
    stored: dict[str, np.ndarray] = field(default_factory=dict)

    def drop_softmax(self) -> None:
        """Remove the softmax and its vocabulary, which vectors do not need."""
        self.config, self.vocab = replace(self.config, softmax=None), None
        self.arrays = without_softmax(self.arrays)
        self.stored = without_softmax(self.stored)


def without_softmax(arrays: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in arrays.items() if not k.startswith(SOFTMAX)}
