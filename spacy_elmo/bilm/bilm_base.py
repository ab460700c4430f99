"""The base class of biLMs: what is the same with numpy and with torch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .array_types import to_layer_arrays
from .config import BiLMConfig
from .data import BiLMData
from .engines.embedder import Embedder, EmbedderSlot
from .engines.forks import no_fork
from .lexicon import Lexicon
from .sentence_checks import check_sentences
from .state import State
from .word_ids import WordIds

# Large enough for fast matrix products, small enough to need little memory.
MAX_BATCH_TOKENS = 2048

ResultT = TypeVar("ResultT")


class BiLMBase(ABC):
    """A biLM in use. The subclasses BiLM and NumpyBiLM compute with torch and with
    numpy.

    config (BiLMConfig): Sizes.
    lexicon (Lexicon): The symbols of the encoder.
    vocab (list[str] | None): The words of the softmax, in order.
    softmax: The output layer, with `log_probs` and `all_log_probs`; None if the model
        has none.
    precision (str): "float32", or with torch "int8" for an approximate and faster
        `embed` on CPUs.
    cache_words (int): The number of words whose vectors `embed` keeps.
    source (str | None): What it was loaded from; None if it was not loaded.
    """

    config: BiLMConfig
    lexicon: Lexicon
    vocab: list[str] | None
    softmax: Any
    precision: str
    cache_words: int
    source: str | None = None
    _state: State | None
    _embedder: EmbedderSlot

    def __repr__(self) -> str:
        """Describe the model in one line: its source, sizes and softmax."""
        origin = "" if self.source is None else f" from {self.source}"
        n_layers, width = self.config.lstm.n_layers, self.config.width
        softmax = "no softmax"
        if self.config.softmax is not None:
            softmax = f"softmax of {self.config.softmax.n_words:,} words"
        return (
            f"<{type(self).__name__}{origin}: {n_layers} + 1 layers, width {width}, "
            f"{softmax}>"
        )

    # What the subclasses provide

    @property
    @abstractmethod
    def data(self) -> BiLMData:
        """Return the config and the weights as numpy arrays."""

    @property
    @abstractmethod
    def word_ids(self) -> WordIds:
        """Return what maps words to the ids of the encoder."""

    @abstractmethod
    def new_zeros(self, *shape: int) -> Any:
        """Make zeros of the kind that `run` computes: an array, or a tensor on the
        model's device."""

    @abstractmethod
    def _get_embedder(self) -> Embedder:
        """Return an embedder for the model with its current weights and settings."""

    @abstractmethod
    def drop_softmax(self) -> None:
        """Remove the softmax and its vocabulary, which `embed` does not need."""

    # Inference

    def zero_state(self, n_rows: int) -> State:
        """Make the states of sentences that start from zero."""
        return State.zeros(self.config.lstm, n_rows, self.new_zeros(0))

    def embed(
        self,
        sentences: Sequence[Sequence[str]],
        stateful: bool = False,
        *,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
    ) -> list[np.ndarray]:
        """Compute all layers of every token. Unless stateful, the vectors of a sentence
        depend on nothing but the sentence, up to float rounding. (With precision
        "int8", other sentences of the call can change what is rounded up or down.)

        sentences (Sequence[Sequence[str]]): Tokenized sentences.
        stateful (bool): Start sentence r from the last states of sentence r of the
            previous stateful call (see reset_state).
        max_batch_tokens (int): The most tokens to compute at a time. A longer sentence
            is computed alone.
        RETURNS (list[np.ndarray]): float32, (n_layers + 1, n_tokens, width) for each
            sentence, in order.
        """
        state = None
        if stateful:
            state = self._state
            if state is None:
                state = self.zero_state(0)
        arrays, state = self._run(
            sentences,
            state,
            max_batch_tokens,
            lambda row, layers: to_layer_arrays(layers),
        )
        if stateful:
            self._state = state
        return arrays

    def run(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None = None,
        *,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
        finish: Callable[[int, Any], Any] | None = None,
    ) -> tuple[list[Any], State | None]:
        """Compute all layers of every token as arrays of the engine: tensors with
        torch, on the model's device. The model stores no state: the caller passes it in
        and gets the new one back.

        sentences (Sequence[Sequence[str]]): Tokenized sentences.
        state (State | None): Sentence r starts from row r; missing rows are zero. None
            starts every sentence from zero.
        max_batch_tokens (int): As for `embed`.
        finish (Callable | None): Called with the number of each sentence and its layers
            as soon as they are computed. Its results are returned instead of the
            layers, so that not all layers need to be in memory at once.
        RETURNS (tuple): The layers of each sentence, (n_tokens, n_layers + 1, width),
            and the new state (None if state is None).
        """
        return self._run(sentences, state, max_batch_tokens, finish or _unchanged)

    def run_with_boundaries(
        self, sentences: Sequence[Sequence[str]], finish: Callable[[int, Any], ResultT]
    ) -> list[ResultT]:
        """Compute the layers of sentences and of their boundaries; see `run`.

        finish (Callable): Called with the number of each sentence and its layers,
            (n_tokens + 2, n_layers + 1, width).
        RETURNS (list): The results of finish, in order.
        """
        results, _ = self._run(
            sentences, None, MAX_BATCH_TOKENS, finish, boundaries=True
        )
        return results

    def _run(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None,
        max_batch_tokens: int,
        finish: Callable[[int, Any], ResultT],
        boundaries: bool = False,
    ) -> tuple[list[ResultT], State | None]:
        if max_batch_tokens < 1:
            raise ValueError(
                f"max_batch_tokens is {max_batch_tokens}; expected 1 or more"
            )
        keys = [self.word_ids.keys(words) for words in check_sentences(sentences)]
        if not keys:
            return [], state
        with no_fork():
            return self._get_embedder().run(
                keys,
                state,
                max_batch_tokens=max_batch_tokens,
                finish=finish,
                boundaries=boundaries,
            )

    # The language model

    def predict(
        self, sentence: Sequence[str], position: int, n: int = 10
    ) -> list[tuple[str, float]]:
        """Predict the word at a position from the words before and after it.

        sentence (Sequence[str]): The words. The word at the position has no influence.
        position (int): The position of the word to predict, from 0.
        n (int): How many words to return.
        RETURNS (list[tuple[str, float]]): The most likely words of the softmax and
            their probabilities, which add up to 1 over its vocabulary.
        """
        from .language_model import predict_word

        return predict_word(self, sentence, position, n)

    def surprisal(
        self, sentences: Sequence[Sequence[str]], *, boundaries: bool = False
    ) -> list[np.ndarray]:
        """Compute the surprisal of each word in bits: -log2 of its probability. Words
        that the softmax does not know count as <UNK>.

        boundaries (bool): Also return a row for the beginning of each sentence, whose
            column 0 is NaN, and one for its end, whose column 1 is NaN.
        RETURNS (list[np.ndarray]): float32, (n_tokens, 2) for each sentence, or
            (n_tokens + 2, 2) with boundaries. Column 0 is the surprisal given the words
            before, column 1 given the words after.
        """
        from .language_model import surprisal

        return surprisal(self, check_sentences(sentences), boundaries)

    # State and caches

    def reset_state(self) -> None:
        """Forget the states of stateful calls."""
        self._state = None

    def clear_cache(self) -> None:
        """Drop the cached vectors of words."""
        self._embedder.clear_words()

    def _reset_derived(self) -> None:
        self._state = None
        self._embedder = EmbedderSlot()

    def __getstate__(self) -> dict[str, Any]:
        # Copies and pickles do not need the state and the caches, and the lock of the
        # caches cannot be pickled.
        dropped = ("_state", "_embedder")
        return {k: v for k, v in self.__dict__.items() if k not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset_derived()

    # Files

    def save(self, folder: str | Path, dtype: str = "stored") -> None:
        """Write the native form: a folder with config.json, weights.safetensors and, if
        the model has them, softmax.safetensors, vocab.txt and lexicon.json.

        dtype (str): "stored" for the number type in which each array was loaded (as
            long as its values have not changed), "float32", or for smaller files
            "float16" or "int8".
        """
        from .formats.native import save_native

        save_native(self.data, Path(folder), dtype)


def _unchanged(row: int, layers: Any) -> Any:
    return layers
