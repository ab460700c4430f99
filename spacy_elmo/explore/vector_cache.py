"""Keep the layers of sentences that were typed, up to a number of bytes."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from ..bilm import BiLMBase

KEPT_BYTES = 2**27


class VectorCache:
    """Computes the layers of sentences, and keeps those that were used last. When one
    sentence of a text is changed, only that one is computed again.

    max_bytes (int): The most bytes of layers to keep.
    """

    def __init__(self, bilm: BiLMBase, max_bytes: int = KEPT_BYTES) -> None:
        self.bilm = bilm
        self.max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, ...], np.ndarray] = OrderedDict()
        self._n_bytes = 0

    def embed(self, sentences: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        """Return the layers of sentences, (n_layers, n_words, width) each."""
        missing = [words for words in dict.fromkeys(sentences) if words not in self]
        for words, layers in zip(missing, self.bilm.embed(missing)):
            self._kept[words] = layers
            self._n_bytes += layers.nbytes
        for words in sentences:
            self._kept.move_to_end(words)
        found = [self._kept[words] for words in sentences]
        while self._n_bytes > self.max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._n_bytes -= dropped.nbytes
        return found

    def __contains__(self, words: tuple[str, ...]) -> bool:
        return words in self._kept

    def __len__(self) -> int:
        return len(self._kept)
