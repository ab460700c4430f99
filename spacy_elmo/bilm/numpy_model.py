"""The biLM on arrays. It needs no torch, and cannot be trained."""

import numpy as np

from .bilm_base import BiLMBase
from .data import BiLMData
from .engines.blas_threads import one_blas_thread
from .engines.embedder import Embedder
from .engines.numpy_engine import NumpyEngine
from .engines.numpy_softmax import NumpySoftmax, make_numpy_softmax
from .extras import needs_torch
from .state import State
from .word_ids import Key, WordIds, make_word_ids


class NumpyBiLM(BiLMBase):
    """A bidirectional language model that computes with numpy.

    data (BiLMData): Its config and weights, which must not be changed afterwards.

    The attribute cache_words (the number of words whose vectors `embed` keeps) may be
    set at any time.
    """

    softmax: NumpySoftmax | None

    def __init__(self, data: BiLMData) -> None:
        self._data = data
        self._word_ids = make_word_ids(data.config.encoder, data.lexicon)
        self.config = data.config
        self.lexicon = data.lexicon
        self.vocab = None if data.vocab is None else list(data.vocab)
        self.softmax = None
        if data.config.softmax is not None:
            self.softmax = make_numpy_softmax(data.config.softmax, data.arrays)
        self.precision = "float32"
        self.cache_words = 2**15
        self._reset_derived()

    @property
    def data(self) -> BiLMData:
        return self._data

    @property
    def word_ids(self) -> WordIds:
        return self._word_ids

    def new_zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    def _get_embedder(self) -> Embedder:
        if self.precision != "float32":
            raise needs_torch(f"precision {self.precision!r}")

        def make() -> Embedder:
            engine = NumpyEngine(self.config, self._data.arrays)
            return Embedder(self.config, self.word_ids, engine, self.cache_words)

        return self._embedder.get(self.cache_words, make)

    def run_direction(
        self, direction: int, keys: list[Key], active: list[int], state: State
    ) -> np.ndarray:
        """Run one direction over sequences in the layout of Packing.

        direction (int): 0 forward, 1 backward.
        keys (list[Key]): The keys of the packed tokens, in the order in which the
            direction reads them.
        active (list[int]): The number of active rows at each step.
        state (State): One row per sequence; those of this direction are updated in
            place.
        RETURNS (np.ndarray): The packed outputs of the top layer, (n_tokens, proj).
        """
        embedder = self._get_embedder()
        table, (rows,) = embedder.words.lookup([keys])
        engine = embedder.engine
        assert isinstance(engine, NumpyEngine)
        with one_blas_thread():
            return engine.run_direction(direction, table, rows, active, state)[-1]

    def drop_softmax(self) -> None:
        self._data.drop_softmax()
        self.config = self._data.config
        self.softmax, self.vocab = None, None
