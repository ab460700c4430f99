"""The bidirectional language model."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
    TypeVar,
    cast,
)

import numpy as np
import torch
from torch import Tensor, nn

from .config import BiLMConfig, LSTMConfig, WordsConfig
from .devices import to_device
from .encoders import Lexicon, WordEncoder, make_encoder
from .engines.runtime import PRECISIONS, Runtime
from .layers import ProjectedLSTM
from .softmax import make_softmax
from .stack import run_stack
from .state import LayerState, State

MAX_BATCH_TOKENS = 2048  # large enough for good GEMMs, small enough for little memory

ResultT = TypeVar("ResultT")


class Batch(NamedTuple):
    """Sentences as tensors: the ids of distinct words (n_words, ...), the row of each
    token in them (n_rows, n_steps) with boundaries, padded with 0, and the lengths
    (n_rows,) with boundaries. The ids are on the host, the others on the device."""

    ids: Tensor
    tokens: Tensor
    lengths: Tensor


class Output(NamedTuple):
    """All layers (n_layers + 1, n_rows, n_steps, width), boundaries included and
    meaningless where a row is padded, and the states after the last tokens."""

    layers: Tensor
    state: State


class BiLM(nn.Module):
    """Token encoder, two stacks of projected LSTMs, and a softmax if there is one.

    config (BiLMConfig): Sizes.
    lexicon (Lexicon | None): The symbols of the encoder; byte models have none.
    vocab (Sequence[str] | None): The words of the softmax, in order.
    initialize (bool): Draw weights; False leaves them to whoever loads some.

    Attributes that may be set at any time: precision ("float32", or "int8" for an
    approximate and faster `embed` on CPUs) and cache_words (how many distinct words'
    vectors `embed` keeps).
    """

    _state: State | None
    _runtime: Runtime | None
    _stamp: Any
    _lock: threading.Lock

    def __init__(
        self,
        config: BiLMConfig,
        *,
        lexicon: Lexicon | None = None,
        vocab: Sequence[str] | None = None,
        initialize: bool = True,
    ) -> None:
        super().__init__()
        self.config = config
        self.lexicon = lexicon or Lexicon()
        self.vocab = None if vocab is None else list(vocab)
        self.encoder = make_encoder(
            config.encoder,
            config.lstm.projection_dim,
            projection=config.encoder_projection,
            lexicon=lexicon,
        )
        self.forward_layers = _make_layers(config.lstm)
        self.backward_layers = _make_layers(config.lstm)
        self.softmax = None
        if config.softmax is not None:
            self.softmax = make_softmax(config.softmax, config.lstm.projection_dim)
        if self.vocab is not None and config.softmax is not None:
            if len(self.vocab) != config.softmax.n_words:
                raise ValueError(
                    f"the vocabulary has {len(self.vocab)} words and the softmax "
                    f"{config.softmax.n_words}; expected as many"
                )
        self.precision = "float32"
        self.cache_words = 2**15
        self._forget()
        if initialize:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, from torch's random numbers."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None and module is not self:
                reset()

    @classmethod
    def from_word_vectors(
        cls,
        words: Sequence[str],
        vectors: np.ndarray,
        *,
        lstm: LSTMConfig | None = None,
        trainable: bool = False,
    ) -> "BiLM":
        """An untrained biLM that reads a table of static word vectors.

        words (Sequence[str]): Distinct words.
        vectors (np.ndarray): Their vectors, (n_words, dim). Words without one get the
            mean of all; the sentence boundaries get noise of the table's spread.
        lstm (LSTMConfig | None): Sizes of the rest.
        trainable (bool): Whether training moves the table.
        """
        if len(words) != len(vectors) or len(set(words)) != len(words):
            raise ValueError(
                f"found {len(words)} words, {len(set(words))} of them distinct, with "
                f"{len(vectors)} vectors; expected distinct words with a vector each"
            )
        names = [*WordEncoder.SPECIAL, *words]
        if len(set(names)) != len(names):
            raise ValueError(f"words may not be one of {WordEncoder.SPECIAL}")
        config = BiLMConfig(
            encoder=WordsConfig(dim=vectors.shape[1], trainable=trainable),
            lstm=lstm or LSTMConfig(),
        )
        bilm = cls(config, lexicon=Lexicon(words={w: i for i, w in enumerate(names)}))
        noise = np.random.default_rng(0).normal(0, vectors.std(), (2, vectors.shape[1]))
        table = np.concatenate([noise, vectors.mean(0, keepdims=True), vectors])
        with torch.no_grad():
            cast(WordEncoder, bilm.encoder).table.copy_(torch.from_numpy(table))
        return bilm

    @property
    def directions(self) -> list[list[ProjectedLSTM]]:
        layers = [list(self.forward_layers), list(self.backward_layers)]
        return cast(list[list[ProjectedLSTM]], layers)

    @property
    def weight(self) -> Tensor:
        """One of the weights, to ask for the device and type of all."""
        return self.directions[0][0].weight

    @property
    def device(self) -> torch.device:
        return self.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    # The differentiable function

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """RETURNS (Batch): Sentences as tensors, for a model where this one is."""
        keys = [self.encoder.keys(words) for words in _checked(sentences)]
        rows: dict[Any, int] = {}
        index = np.zeros((len(keys), max(map(len, keys), default=0)), dtype=np.int64)
        for row, sentence in enumerate(keys):
            index[row, : len(sentence)] = [
                rows.setdefault(key, len(rows)) for key in sentence
            ]
        return Batch(
            self.encoder.encode(list(rows)),
            to_device(index, self.device),
            to_device(torch.tensor([len(k) for k in keys]), self.device),
        )

    def forward(self, batch: Batch, state: State | None = None) -> Output:
        """A function of a batch and a state (zeros if none) that returns all layers
        and the new state."""
        x = self.encoder(batch.ids)[batch.tokens]  # (n_rows, n_steps, proj)
        return self.contextualize(x, batch.lengths, state)

    def contextualize(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: State | None = None,
    ) -> Output:
        """Run the LSTMs.

        x (Tensor): Token vectors, (n_rows, n_steps, proj).
        lengths (Tensor | None): Tokens in each row; None if no row is padded.
        state (State | None): States to start from; None for zeros.
        RETURNS (Output): Layers and the new state.
        """
        n_rows, n_steps, _ = x.shape
        if state is None:
            state = State.zeros(self.config.lstm, n_rows, x)
        steps = torch.arange(n_steps, device=x.device).expand(n_rows, n_steps)
        if lengths is None:
            active = None
            mirror = n_steps - 1 - steps
        else:
            active = steps < lengths[:, None]
            # Reverse each row within its own length: padding stays at the end.
            mirror = torch.where(active, lengths[:, None] - 1 - steps, steps)
        reverse = mirror[:, :, None].expand_as(x)  # (n_rows, n_steps, proj)
        outputs: list[Tensor] = []
        last_states: list[list[LayerState]] = []
        for d, layers in enumerate(self.directions):
            columns, last = [x], []
            for y, layer_state in run_stack(
                layers,
                x.gather(1, reverse) if d else x,
                state.layers(d),
                lambda layer, x, start: layer(x, active, start),
                skip_connections=self.config.lstm.skip_connections,
            ):
                columns.append(y.gather(1, reverse) if d else y)
                last.append(layer_state)
            outputs.append(torch.stack(columns))
            last_states.append(last)
        return Output(torch.cat(outputs, -1), State.stack(last_states))

    # Inference

    def embed(
        self,
        sentences: Sequence[Sequence[str]],
        stateful: bool = False,
        *,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
    ) -> list[np.ndarray]:
        """All layers of every token. The vectors of a sentence depend on nothing but
        the sentence, unless stateful.

        sentences (Sequence[Sequence[str]]): Tokenised sentences.
        stateful (bool): Let row r start from the states in which row r of the stateful
            call before ended (see reset_state).
        max_batch_tokens (int): Tokens computed at a time.
        RETURNS (list[np.ndarray]): float32, (n_layers + 1, n_tokens, width) for each
            sentence, in order.
        """
        state = None
        if stateful:
            state = self._state
            if state is None:
                state = State.zeros(self.config.lstm, len(sentences), self.weight)
        arrays, state = self._run(sentences, state, max_batch_tokens, _to_numpy)
        if stateful:
            self._state = state
        return arrays

    def run(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None = None,
        *,
        max_batch_tokens: int = MAX_BATCH_TOKENS,
        finish: Callable[[int, Tensor], Any] | None = None,
    ) -> tuple[list[Any], State | None]:
        """What `embed` does, for tensors: a function of sentences and a state.

        state (State | None): Row r is where sentence r starts; missing rows are
            zero. None for stateless.
        finish (Callable | None): Called with the number and the layers of each
            sentence as soon as they are known; its results are returned instead of the
            layers, so that not all of them need to be in memory at a time.
        RETURNS (tuple): For each sentence (n_tokens, n_layers + 1, width) on the
            model's device, and the new state (None if stateless).
        """
        if finish is None:
            return self._run(sentences, state, max_batch_tokens, _as_it_is)
        return self._run(sentences, state, max_batch_tokens, finish)

    # Within a user's inference mode too, what is kept must be ordinary tensors.
    @torch.inference_mode(False)
    @torch.no_grad()
    def _run(
        self,
        sentences: Sequence[Sequence[str]],
        state: State | None,
        max_batch_tokens: int,
        finish: Callable[[int, Tensor], ResultT],
    ) -> tuple[list[ResultT], State | None]:
        if max_batch_tokens < 1:
            raise ValueError(
                f"max_batch_tokens is {max_batch_tokens}; expected 1 or more"
            )
        keys = [self.encoder.keys(words) for words in _checked(sentences)]
        if not keys:
            return [], state
        return self._get_runtime().run(
            keys, state, max_batch_tokens=max_batch_tokens, finish=finish
        )

    # The language model

    def predict(
        self, sentence: Sequence[str], position: int, n: int = 10
    ) -> list[tuple[str, float]]:
        """Likely words in a gap, by what stands before and after it.

        sentence (Sequence[str]): The words; the one at the gap does not matter.
        position (int): Where the gap is.
        n (int): How many words.
        RETURNS (list[tuple[str, float]]): The best words of the softmax with their
            probabilities, normalised over its vocabulary.
        """
        from .language_model import predict_word

        return predict_word(self, sentence, position, n)

    def surprisal(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """RETURNS (list[np.ndarray]): For each sentence (n_tokens, 2): how many bits of
        information each word was, given the words before it, and given the words after
        it. Words the softmax does not know have that of unknown words."""
        from .language_model import surprisal

        return surprisal(self, _checked(sentences))

    def reset_state(self) -> None:
        """Forget what stateful calls left behind."""
        self._state = None

    def clear_cache(self) -> None:
        """Forget the vectors of words."""
        if self._runtime is not None:
            self._runtime.words.clear()

    def weights_changed(self) -> None:
        """Drop all that was derived from the weights. Needed only after a change that
        torch did not see, such as one through memory shared with numpy or cupy."""
        self._runtime = None

    def _get_runtime(self) -> Runtime:
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision is {self.precision!r}; expected one of {PRECISIONS}"
            )
        weights = tuple((p.data_ptr(), p._version) for p in self.parameters())
        stamp = (weights, self.precision, self.cache_words)
        with self._lock:
            if self._runtime is None or self._stamp != stamp:
                self._runtime = Runtime(
                    self, precision=self.precision, cache_words=self.cache_words
                )
                self._stamp = stamp
            return self._runtime

    def _forget(self) -> None:
        self._state = None
        self._runtime = None
        self._stamp = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # Copies and pickles carry weights, not what is derived from them.
        dropped = ("_state", "_runtime", "_stamp", "_lock")
        return {k: v for k, v in self.__dict__.items() if k not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    def save(self, folder: str | Path, dtype: str = "float32") -> None:
        """Write the native form: a folder with config.json, weights.safetensors and,
        if there is a softmax, softmax.safetensors and vocab.txt.

        dtype (str): "float32", or for smaller files "float16" or "int8".
        """
        from .formats.native import save_native

        save_native(self, Path(folder), dtype)

    def drop_softmax(self) -> None:
        """Forget the output layer and its vocabulary, which vectors do not need."""
        self.softmax, self.vocab = None, None
        self.config = replace(self.config, softmax=None)


def _make_layers(config: LSTMConfig) -> nn.ModuleList:
    return nn.ModuleList(
        ProjectedLSTM(
            config.projection_dim,
            dim=config.dim,
            projection_dim=config.projection_dim,
            cell_clip=config.cell_clip,
            proj_clip=config.proj_clip,
            forget_bias=config.forget_bias,
            projection=config.projection,
        )
        for _ in range(config.n_layers)
    )


def _checked(sentences: Iterable[Iterable[str]]) -> list[list[str]]:
    if isinstance(sentences, str):
        raise ValueError("expected a list of sentences, found a string")
    lists: list[list[str]] = []  # of generators too, which can be read only once
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise ValueError(f"sentence {number} is a string; expected a list of words")
        lists.append(list(sentence))
        for word in lists[-1]:
            if not isinstance(word, str):
                raise ValueError(
                    f"sentence {number} has {word!r}, of type {type(word).__name__}; "
                    "expected words as strings"
                )
    return lists


def _as_it_is(row: int, layers: Tensor) -> Tensor:
    return layers


def _to_numpy(row: int, layers: Tensor) -> np.ndarray:
    """(n_tokens, n_layers + 1, width) to an array (n_layers + 1, n_tokens, width) with
    memory of its own: what is kept must not keep the batch."""
    layers = layers.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    return layers.float().cpu().numpy()
