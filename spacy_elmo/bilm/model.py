"""The bidirectional language model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from .config import BiLMConfig, LSTMConfig
from .data import BiLMData, without_softmax
from .devices import to_device
from .encoders import make_encoder
from .engines.embedder import EmbedderSlot
from .layers import ProjectedLSTM
from .lexicon import Lexicon
from .sentence_checks import check_sentences
from .softmax import make_softmax
from .stack import run_stack
from .state import LayerState, State

# Large enough for fast matrix products, small enough to need little memory.
MAX_BATCH_TOKENS = 2048

ResultT = TypeVar("ResultT")


class Batch(NamedTuple):
    """Sentences as tensors.

    ids: The encoder's ids of each distinct word, (n_words, ...), on the host.
    tokens: For each token, boundaries included, the row of its word in ids; padded
        with 0, (n_rows, n_steps), on the model's device.
    lengths: The number of tokens in each row, boundaries included, (n_rows,), on the
        model's device.
    """

    ids: Tensor
    tokens: Tensor
    lengths: Tensor


class Output(NamedTuple):
    """The result of the model.

    layers: All layers, (n_layers + 1, n_rows, n_steps, width), boundaries included.
        Values at padded places are meaningless.
    state: The states after the last token of each row.
    """

    layers: Tensor
    state: State


class BiLM(nn.Module):
    """A bidirectional language model: a token encoder, two stacks of projected LSTMs
    and, optionally, a softmax.

    config (BiLMConfig): Sizes.
    lexicon (Lexicon | None): The symbols of the encoder; byte models have none.
    vocab (Sequence[str] | None): The words of the softmax, in order.
    initialize (bool): Draw random weights. False leaves them uninitialized, to be
        loaded.

    Two attributes may be set at any time: precision ("float32", or "int8" for an
    approximate and faster `embed` on CPUs) and cache_words (the number of words whose
    vectors `embed` keeps).
    """

    _state: State | None
    _embedder: EmbedderSlot

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
        self.stored: dict[str, np.ndarray] = {}  # see BiLMData
        self.precision = "float32"
        self.cache_words = 2**15
        self._reset_derived()
        if initialize:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, with torch's global random generator."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None and module is not self:
                reset()

    @property
    def directions(self) -> list[list[ProjectedLSTM]]:
        layers = [list(self.forward_layers), list(self.backward_layers)]
        return cast(list[list[ProjectedLSTM]], layers)

    @property
    def weight(self) -> Tensor:
        """Return one of the weights. All weights have the same device and dtype."""
        return self.directions[0][0].weight

    @property
    def device(self) -> torch.device:
        return self.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    # The differentiable function

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Turn sentences into tensors for `forward`."""
        keys = [self.encoder.keys(words) for words in check_sentences(sentences)]
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
        """Compute all layers and the new state, with gradients.

        batch (Batch): Sentences, as `prepare` returns them.
        state (State | None): States to start from; None for zeros.
        RETURNS (Output): Layers and the new state.
        """
        x = self.encoder(batch.ids)[batch.tokens]  # (n_rows, n_steps, proj)
        return self.contextualize(x, batch.lengths, state)

    def contextualize(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: State | None = None,
    ) -> Output:
        """Run the LSTMs over token vectors.

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
        """Compute all layers of every token. Unless stateful, the vectors of a sentence
        depend on nothing but the sentence.

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
        """Compute all layers of every token as tensors. The model stores no state: the
        caller passes it in and gets the new one back.

        sentences (Sequence[Sequence[str]]): Tokenized sentences.
        state (State | None): Sentence r starts from row r; missing rows are zero. None
            starts every sentence from zero.
        max_batch_tokens (int): As for `embed`.
        finish (Callable | None): Called with the number of each sentence and its layers
            as soon as they are computed. Its results are returned instead of the
            layers, so that not all layers need to be in memory at once.
        RETURNS (tuple): The layers of each sentence, (n_tokens, n_layers + 1, width),
            on the model's device, and the new state (None if state is None).
        """
        if finish is None:
            return self._run(sentences, state, max_batch_tokens, _unchanged)
        return self._run(sentences, state, max_batch_tokens, finish)

    # Leave the caller's inference mode: a tensor made in it could not be changed later,
    # and the caches change theirs.
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
        keys = [self.encoder.keys(words) for words in check_sentences(sentences)]
        if not keys:
            return [], state
        return self._embedder.get(self).run(
            keys, state, max_batch_tokens=max_batch_tokens, finish=finish
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

    def surprisal(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Compute the surprisal of each word in bits: -log2 of its probability. Words
        that the softmax does not know count as <UNK>.

        RETURNS (list[np.ndarray]): float32, (n_tokens, 2) for each sentence. Column 0
            is the surprisal given the words before, column 1 given the words after.
        """
        from .language_model import surprisal

        return surprisal(self, check_sentences(sentences))

    def reset_state(self) -> None:
        """Forget the states of stateful calls."""
        self._state = None

    def clear_cache(self) -> None:
        """Drop the cached vectors of words."""
        self._embedder.clear_words()

    def weights_changed(self) -> None:
        """Drop everything derived from the weights. Needed only after a change that
        torch cannot notice, such as one through memory shared with numpy or cupy."""
        self._embedder.drop()

    def _reset_derived(self) -> None:
        self._state = None
        self._embedder = EmbedderSlot()

    def __getstate__(self) -> dict[str, Any]:
        # Copies and pickles do not need the state and the caches, and the lock of the
        # caches cannot be pickled.
        dropped = ("_state", "_embedder")
        return {k: v for k, v in self.__dict__.items() if k not in dropped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._reset_derived()

    @property
    def data(self) -> BiLMData:
        """Return the config and the weights as numpy arrays, which share their memory
        with the model's weights on a CPU."""
        from .torch_data import get_data

        return get_data(self)

    def save(self, folder: str | Path, dtype: str = "stored") -> None:
        """Write the native form: a folder with config.json, weights.safetensors and, if
        the model has them, softmax.safetensors, vocab.txt and lexicon.json.

        dtype (str): "stored" for the number type in which each array was loaded (as
            long as its values have not changed), "float32", or for smaller files
            "float16" or "int8".
        """
        from .formats.native import save_native

        save_native(self.data, Path(folder), dtype)

    def drop_softmax(self) -> None:
        """Remove the softmax and its vocabulary, which `embed` does not need."""
        self.softmax, self.vocab = None, None
        self.config = replace(self.config, softmax=None)
        self.stored = without_softmax(self.stored)


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


def _unchanged(row: int, layers: Tensor) -> Tensor:
    return layers


def _to_numpy(row: int, layers: Tensor) -> np.ndarray:
    """Convert (n_tokens, n_layers + 1, width) to an array (n_layers + 1, n_tokens,
    width). It is a copy, so that keeping it does not keep the whole batch in memory."""
    layers = layers.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    return layers.float().cpu().numpy()
