"""The bridge between a torch biLM and Thinc."""

import contextlib
import copy
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import srsly
import torch
from thinc.api import Ops, Optimizer, get_current_ops, get_torch_default_device
from thinc.shims import Shim
from thinc.types import Floats3d

from ..bilm import BiLM, load_bilm
from ..bilm.fingerprint import fingerprint
from ..bilm.formats.bundled import bundled_for
from ..bilm.formats.native import load_native_parts, native_parts
from .arrays import to_array, to_tensor
from .encode_docs import read_docs_with_gradient
from .segments import Reading
from .settings import Settings


class BiLMShim(Shim):
    """Holds a biLM for a Thinc model.

    source (str | None): Where to load the biLM from when it is first needed; None
        for the bundled one of the language. Not looked at if weights come from bytes.
    frozen (bool): Never update the weights.
    lang (str | None): Of the texts; None for not known yet.
    keep_softmax (bool): Keep the output layer, which only probabilities need.
    """

    def __init__(self, source: str | None = None, *, frozen: bool = True) -> None:
        super().__init__(None)
        self.source = source
        self.frozen = frozen
        self.lang: str | None = None
        self.keep_softmax = False
        self._fingerprint = ""
        self._updated = False
        self._from_bytes = False

    @property
    def bilm(self) -> BiLM:
        if self._model is None:
            self._load_own()
        return self._model

    @property
    def sizes(self) -> tuple[int, int]:
        """RETURNS (tuple[int, int]): Layers, the token vectors included, and width."""
        return self.bilm.config.lstm.n_layers + 1, self.bilm.config.width

    @property
    def fingerprint(self) -> str:
        """RETURNS (str): Differs for different weights; the same weights have the same
        from load to load, until they are updated."""
        _ = self.bilm  # loaded now if it is not yet
        return self._fingerprint

    def load(self, source: str | None) -> None:
        """Take weights from a source, at once. None takes what the shim was made
        for, or keeps what came from bytes."""
        if source is not None:
            self._set(load_bilm(source))
        elif self._model is None or (self._updated and not self._from_bytes):
            self._load_own()

    def _load_own(self) -> None:
        self._set(load_bilm(self.source or bundled_for(self.lang or "en")))

    def _set(self, bilm: BiLM) -> None:
        if not self.keep_softmax:
            bilm.drop_softmax()
        self._fingerprint = fingerprint(bilm)  # while the weights are on the CPU
        self._model = bilm.to(get_torch_default_device())
        self._updated = False

    def begin_layers(
        self, ops: Ops, readings: Sequence[Reading], settings: Settings
    ) -> tuple[list[Floats3d], Callable[[list[Floats3d]], None]]:
        """RETURNS: The layers of docs and a callback that takes their gradients."""
        outputs = read_docs_with_gradient(self.bilm, readings, settings)

        def backprop(gradients: list[Floats3d]) -> None:
            # A batch of nothing but whitespace depends on no weight.
            if any(output.requires_grad for output in outputs):
                torch.autograd.backward(
                    outputs, [to_tensor(d, self.bilm.device) for d in gradients]
                )

        return [to_array(ops, output) for output in outputs], backprop

    def finish_update(self, optimizer: Optimizer) -> None:
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
        """Averaged weights of an optimizer, for the time of the block."""
        weights = [] if self._model is None else self._weights()
        given = [(key, weight) for key, weight in weights if key in params]
        if self.frozen or not given:
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

    def _weights(self) -> list[tuple[tuple[int, str], torch.nn.Parameter]]:
        # Thinc counts models and shims apart but keeps their weights in one table: a
        # prefix keeps ours from meeting a layer's "W" or "b".
        named = self.bilm.named_parameters()
        return [((self.id, f"bilm.{name}"), weight) for name, weight in named]

    def _weights_changed(self) -> None:
        self.bilm.weights_changed()
        # A hash of the weights would fetch them from the device.
        self._fingerprint = uuid.uuid4().hex

    def copy(self) -> "BiLMShim":
        """A copy whose optimizer state is its own."""
        other = BiLMShim(self.source, frozen=self.frozen)
        other._model = copy.deepcopy(self._model)
        other._fingerprint = self._fingerprint
        other._updated, other._from_bytes = self._updated, self._from_bytes
        other.lang = self.lang
        other.keep_softmax = self.keep_softmax
        return other

    def to_device(self, device_type: str, device_id: int) -> None:
        device = f"cuda:{device_id}" if device_type == "gpu" else "cpu"
        self.bilm.to(device)

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps(native_parts(self.bilm))

    def from_bytes(self, data: bytes) -> "BiLMShim":
        self._set(load_native_parts(srsly.msgpack_loads(data)))
        self.source = None
        self._from_bytes = True
        return self
