"""The bidirectional language model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from .bilm_base import BiLMBase
from .config import BiLMConfig, LSTMConfig
from .data import BiLMData, without_softmax
from .devices import to_device
from .encoders import make_encoder
from .engines.embedder import Embedder, check_precision
from .engines.torch_engine import make_engine
from .layers import ProjectedLSTM
from .lexicon import Lexicon
from .sentence_checks import check_sentences
from .softmax import make_softmax
from .stack import run_stack
from .state import LayerState, State
from .word_ids import WordIds

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _without_autocast(method: MethodT) -> MethodT:
    """Make a method of BiLM compute in the precision of its weights, also within the
    caller's autocast: vectors of less precision would stay in the caches."""

    @wraps(method)
    def run(self: "BiLM", *args: Any, **settings: Any) -> Any:
        with torch.autocast(self.device.type, enabled=False):
            return method(self, *args, **settings)

    return cast(MethodT, run)


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


class BiLM(BiLMBase, nn.Module):
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
                    f"{config.softmax.n_words}; expected equal numbers"
                )
        self.stored: dict[str, np.ndarray] = {}  # see BiLMData
        self.precision = "float32"
        self.cache_words = 2**15
        self._reset_derived()
        if initialize:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to random values, from torch's global random generator."""
        for module in self.modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None and module is not self:
                reset()

    @property
    def word_ids(self) -> WordIds:
        return self.encoder.word_ids

    def new_zeros(self, *shape: int) -> Tensor:
        return self.weight.detach().new_zeros(shape)

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
        keys = [self.word_ids.keys(words) for words in check_sentences(sentences)]
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

    # Leave the caller's inference mode: a tensor made in it could not be changed later,
    # and the caches change theirs.
    _run = torch.inference_mode(False)(
        torch.no_grad()(_without_autocast(BiLMBase._run))
    )
    predict = torch.no_grad()(_without_autocast(BiLMBase.predict))
    surprisal = torch.no_grad()(_without_autocast(BiLMBase.surprisal))

    def _get_embedder(self) -> Embedder:
        check_precision(self.precision)
        weights = tuple((p.data_ptr(), p._version) for p in self.parameters())

        def make() -> Embedder:
            engine = make_engine(self, self.precision)
            return Embedder(self.config, self.word_ids, engine, self.cache_words)

        return self._embedder.get((weights, self.precision, self.cache_words), make)

    def weights_changed(self) -> None:
        """Drop everything derived from the weights. Needed only after a change that
        torch cannot notice, such as one through memory shared with numpy or cupy."""
        self._embedder.drop()

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__setstate__(self, state)
        self._reset_derived()

    @property
    def data(self) -> BiLMData:
        """Return the config and the weights as numpy arrays, which share their memory
        with the model's weights on a CPU."""
        from .torch_data import get_data

        return get_data(self)

    def drop_softmax(self) -> None:
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
