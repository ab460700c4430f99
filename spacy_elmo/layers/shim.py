"""The Thinc shim that holds the biLM, and loads, saves and updates its weights."""

import contextlib
import copy
import uuid
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import srsly
from spacy.util import logger
from thinc.api import Optimizer, get_current_ops, get_torch_default_device
from thinc.shims import Shim

from ..bilm import BiLMBase, BiLMData, load_data
from ..bilm.engines.embedder import check_precision
from ..bilm.errors import SourceError
from ..bilm.extras import has_torch, needs_torch, require_torch
from ..bilm.fingerprint import fingerprint, identify
from ..bilm.formats.bundled import bundled_for
from ..bilm.formats.native import load_native_parts, native_parts
from ..bilm.formats.sources import make_model
from ..text.token_kinds import MORPHEMES, find_kind
from .arrays import to_array, to_tensor

if TYPE_CHECKING:
    import torch

    from ..bilm import BiLM

NAME = "name"
BIN_32 = b"\xc6"  # what msgpack writes before the length of 64 KiB or more


class BiLMShim(Shim):
    """Holds a biLM for a Thinc model.

    source (str | None): Where to load the biLM from: whatever load_bilm takes, or None
        for the bundled biLM of the language. Ignored after a call of from_bytes.
    frozen (bool): Never update the weights.
    lang (str | None): The language of the texts. None if it is not known before the
        model is initialized.
    tokens (str | None): The kind of tokens that the texts have: one of the constants of
        text.token_kinds. None if it is not known.
    keep_softmax (bool): Keep the output layer, which only surprisal needs.
    precision (str): How layers are predicted: "float32", or "int8", which is faster on
        a CPU where LSTMs are large, and approximate. It needs torch.
    """

    def __init__(
        self,
        source: str | None = None,
        *,
        frozen: bool = True,
        lang: str | None = None,
        tokens: str | None = None,
        keep_softmax: bool = False,
        precision: str = "float32",
    ) -> None:
        super().__init__(None)
        check_precision(precision)
        if precision != "float32" and not frozen:
            raise ValueError(
                f"elmo: found precision '{precision}' and frozen = false; expected "
                "'float32', because only a frozen biLM can be rounded"
            )
        self.source = source
        self.frozen = frozen
        self.lang = lang
        self.tokens = tokens
        self.keep_softmax = keep_softmax
        self.precision = precision
        self.name = ""
        self._fingerprint = ""
        self._identity = ("", "")
        self._updated = False
        self._from_bytes = False

    @property
    def bilm(self) -> BiLMBase:
        """Return the biLM, and load it first if necessary."""
        if self._model is None:
            self._load_source()
        return self._model

    @property
    def trainable_bilm(self) -> "BiLM":
        """Return the biLM as a torch module. Only this one has gradients."""
        require_torch("frozen = false")
        return cast("BiLM", self.bilm)

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the number of layers, token vectors included, and the width."""
        return self.bilm.config.lstm.n_layers + 1, self.bilm.config.width

    @property
    def fingerprint(self) -> str:
        """Return a fingerprint of the weights. It is the same whenever the same weights
        are loaded, and changes with every update."""
        _ = self.bilm  # loading sets the fingerprint
        return self._fingerprint

    @property
    def identity(self) -> str:
        """Return a name of the weights, as `identify` computes it."""
        if self._identity[0] != self.fingerprint:
            self._identity = (self.fingerprint, identify(self.bilm))
        return self._identity[1]

    @property
    def updated(self) -> bool:
        """Return whether the weights were updated after they were loaded."""
        return self._updated

    @property
    def is_loaded(self) -> bool:
        """Return whether the weights have been loaded."""
        return self._model is not None

    @property
    def from_saved(self) -> bool:
        """Return whether the weights were set by from_bytes."""
        return self._from_bytes

    def load(self, source: str | None = None, *, lang: str | None = None) -> None:
        """Load the weights that training starts from.

        source (str | None): Where to load them from. By default, weights that were set
            by from_bytes are kept. All other weights are loaded from the `source` of
            the constructor, unless they were loaded before and not updated since.
        lang (str | None): The language, used if it was not known before.
        """
        self.lang = self.lang or lang
        if source is not None:
            self._set_source(source)
        elif self._model is None or (self._updated and not self._from_bytes):
            self._load_source()

    def _load_source(self) -> None:
        name = self.source or bundled_for(
            self.lang or "en", morphemes=self.tokens == MORPHEMES
        )
        logger.info("elmo: using the biLM '%s'", name)
        self._set_source(name)

    def _set_source(self, name: str) -> None:
        data = load_data(name)
        self._check_tokens(name, find_kind(data.config.training))
        self._set(data)
        self.name = name

    def _check_tokens(self, name: str, kind: str | None) -> None:
        if None not in (kind, self.tokens) and kind != self.tokens:
            warnings.warn(
                f"elmo: the biLM '{name}' was trained on {kind}, but the tokens of "
                f"this pipeline are {self.tokens}, so that it knows few of them; "
                "choose another biLM with the setting 'bilm', or another tokenizer",
                UserWarning,
                stacklevel=2,
            )

    def _set(self, data: BiLMData) -> None:
        if not self.frozen:
            require_torch("frozen = false")
        if not self.keep_softmax:
            data.drop_softmax()
        if self.precision != "float32":
            require_torch(f"precision = '{self.precision}'")
        bilm = make_model(data)
        bilm.precision = self.precision
        self._fingerprint = fingerprint(bilm)  # while the weights are on the CPU
        if self.precision != "float32":  # so that caches do not mix up the layers
            self._fingerprint += f"-{self.precision}"
        self._identity = (self._fingerprint, identify(bilm))
        if has_torch():
            bilm = cast("BiLM", bilm).to(get_torch_default_device())
        elif get_current_ops().device_type != "cpu":
            raise needs_torch("elmo on a GPU")
        self._model = bilm
        self._updated = False

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the weights with their gradients, unless they are frozen."""
        if self.frozen or self._model is None:
            return
        ops = get_current_ops()
        for key, weight in self._weights():
            if weight.grad is not None:
                old, gradient = to_array(ops, weight), to_array(ops, weight.grad)
                updated, _ = optimizer(key, old, gradient)
                weight.data = to_tensor(updated, weight.device)
                weight.grad = None
        self._updated = True
        self._weights_changed()

    @contextlib.contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Use other weights, such as an optimizer's averages, within the block."""
        weights = [] if self.frozen or self._model is None else self._weights()
        given = [(key, weight) for key, weight in weights if key in params]
        if not given:
            yield
            return
        backup = [weight.data for _, weight in given]
        for key, weight in given:
            weight.data = to_tensor(params[key], weight.device)
        self._weights_changed()
        try:
            yield
        finally:
            for (_, weight), data in zip(given, backup):
                weight.data = data
            self._weights_changed()

    def _weights(self) -> "list[tuple[tuple[int, str], torch.nn.Parameter]]":
        # An optimizer stores its state by (id, name), and a shim can have the same id
        # as a model. The prefix makes the names differ from a model's "W" or "b".
        named = self.trainable_bilm.named_parameters()
        return [((self.id, f"bilm.{name}"), weight) for name, weight in named]

    def _weights_changed(self) -> None:
        self.trainable_bilm.weights_changed()
        # A random name, because a hash would need a copy of the weights on the CPU.
        self._fingerprint = uuid.uuid4().hex

    def copy(self) -> "BiLMShim":
        """Return a copy with a new id, for which optimizers keep a separate state."""
        other = BiLMShim(
            self.source,
            frozen=self.frozen,
            lang=self.lang,
            tokens=self.tokens,
            keep_softmax=self.keep_softmax,
            precision=self.precision,
        )
        other._model = copy.deepcopy(self._model)
        other.name = self.name
        other._fingerprint = self._fingerprint
        other._updated, other._from_bytes = self._updated, self._from_bytes
        return other

    def to_device(self, device_type: str, device_id: int) -> None:
        if device_type == "gpu":
            require_torch("elmo on a GPU")
        if has_torch():
            device = f"cuda:{device_id}" if device_type == "gpu" else "cpu"
            cast("BiLM", self.bilm).to(device)

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps({NAME: self.name, **native_parts(self.bilm.data)})

    def from_bytes(self, data: bytes) -> "BiLMShim":
        """Set the weights to those that to_bytes has saved, or raise SourceError if the
        data is damaged."""
        try:
            parts = _unpack(data)
            name = parts.pop(NAME, "")  # older releases saved neither name nor checksum
            if name and "checksum" not in parts:
                raise SourceError("biLM: found no checksum; expected one")
            found = load_native_parts(parts)
        except SourceError:
            raise
        except Exception as error:  # msgpack and safetensors raise many kinds of errors
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise SourceError(
                f"biLM: found damaged data ({reason}); expected what 'elmo' saves"
            ) from None
        self._set(found)
        self.name = str(name)
        self.source = None
        self._from_bytes = True
        return self


def _unpack(data: bytes) -> dict[str, Any]:
    """Unpack the result of BiLMShim.to_bytes without copying the weights, which may be
    hundreds of megabytes. They are the last of the parts.

    RETURNS (dict[str, Any]): The parts, the weights as a memoryview of the data. Small
        weights, and those in another place, are copied like the rest.
    """
    key = srsly.msgpack_dumps("weights")
    start = data.find(key + BIN_32)
    first = start + len(key) + 5  # the length of the weights has 4 bytes
    if start < 0 or int.from_bytes(data[first - 4 : first], "big") != len(data) - first:
        return srsly.msgpack_loads(data)
    parts = srsly.msgpack_loads(data[:start] + key + srsly.msgpack_dumps(b""))
    return {**parts, "weights": memoryview(data)[first:]}
