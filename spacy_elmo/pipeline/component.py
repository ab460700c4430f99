"""The spaCy component `elmo`."""

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import (
    Any,
    NamedTuple,
)

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from ..layers.arrays import to_array
from ..layers.elmo_model import (
    begin_layers,
    get_settings,
    get_shim,
    no_backprop,
    read_vectors,
)
from ..layers.encode_docs import MAX_CALL_TOKENS, read_surprisal
from ..layers.listener import ElmoListener, Replacement
from ..layers.mix import weighted_sum
from ..layers.segments import Reading, read_doc
from ..layers.settings import Settings, Storage
from ..layers.shim import BiLMShim
from ..layers.types import ElmoModelT, Layers, LayersBackprop
from .doc_data import ElmoData, get_data, install_extensions, set_data
from .hand_over import HandOver
from .layer_source import LayerSource


class Output(NamedTuple):
    """What the component knows of a doc: how it was read, its vectors (n_tokens,
    width), and if someone wants them, its layers (n_tokens, n_layers + 1, width) and
    surprisal (n_tokens, 2)."""

    reading: Reading
    vectors: Floats2d
    layers: Floats3d | None
    surprisal: np.ndarray | None = None


class Elmo(TrainablePipe):
    """Sets doc.tensor and doc._.elmo, and gives downstream components the layers.

    vocab (Vocab): The shared vocabulary.
    model (Model[list[Doc], Layers]): The model.
    name (str): The name of the component.
    mix (list[float] | None): The share of each layer in doc.tensor.
    storage (Storage | None): What is kept, and where.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: ElmoModelT,
        name: str = "elmo",
        *,
        mix: list[float] | None = None,
        storage: Storage | None = None,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.mix = mix
        self.storage = storage or Storage()
        self.cfg: dict[str, Any] = {}
        self.listener_map: dict[str, list[ElmoListener]] = {}
        self._nlp: Callable[[], Language | None] = lambda: None
        # What _boundaries_before says where the pipeline is not known.
        self._expects_boundaries = True
        self._source = LayerSource(model, self.storage)
        Replacement(self).install(model)
        self._hand_over: HandOver | None = None
        self._losses: dict[str, float] = {}
        self._sgd: Optimizer | None = None
        self._learns = False  # spaCy's frozen_components are never updated

    def __reduce__(self) -> Any:
        # Without what belongs to a moment of this process.
        state: dict[str, Any] = {"cfg": self.cfg, "mix": self.mix}
        state["storage"] = self.storage
        state["listener_map"] = self.listener_map
        state["_expects_boundaries"] = self._boundaries_before()
        if hasattr(self, "error_handler"):
            state["error_handler"] = self.error_handler
        return Elmo, (self.vocab, self.model, self.name), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._source = LayerSource(self.model, self.storage)

    # Listeners

    @property
    def listeners(self) -> list[ElmoListener]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def listening_components(self) -> list[str]:
        return list(self.listener_map)

    def add_listener(self, listener: ElmoListener, component_name: str) -> None:
        nodes = self.listener_map.setdefault(component_name, [])
        if listener not in nodes:
            nodes.append(listener)
        listener.upstream = self

    def remove_listener(self, listener: ElmoListener, component_name: str) -> bool:
        nodes = self.listener_map.get(component_name, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component_name]
        return True

    def find_listeners(self, component: Any) -> None:
        """Take in the ElmoListeners of a component that want this one."""
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for node in model.walk():
                if isinstance(node, ElmoListener):
                    if node.upstream_name in ("*", self.name):
                        self.add_listener(node, component.name)

    def sizes(self) -> tuple[int, int]:
        """RETURNS (tuple[int, int]): Layers, the token vectors included, and width."""
        return self._shim.sizes

    def watch(self, nlp: Language) -> None:
        """Know the pipeline this component is in."""
        self._nlp = weakref.ref(nlp)

    def settled(self) -> Settings:
        """RETURNS (Settings): How docs are read at this place in the pipeline, also if
        later components have set sentence boundaries in the meantime."""
        settings = get_settings(self.model)
        if settings.segments == "auto" and not self._boundaries_before():
            return replace(settings, segments="windows")
        return settings

    def _boundaries_before(self) -> bool:
        """RETURNS (bool): Whether components before this one may set boundaries."""
        nlp = self._nlp()
        if nlp is None or all(pipe is not self for _, pipe in nlp.components):
            return self._expects_boundaries
        for name, pipe in nlp.components:
            if pipe is self:
                return False
            assigns = nlp.get_pipe_meta(name).assigns
            if not assigns or {"token.is_sent_start", "doc.sents"} & set(assigns):
                return True
        return False

    def listen(self, docs: list[Doc], is_train: bool) -> tuple[Layers, LayersBackprop]:
        """What a listener gets for docs: what `update` has computed for them if they
        are being learned from, otherwise the layers that this component found for
        them, computed now if they are not at hand."""
        if is_train:
            if self._hand_over is None or not self._hand_over.has(docs):
                self._warn_of_boundaries(docs)
                self._begin(docs, self.settled())
            assert self._hand_over is not None
            return self._hand_over.take(docs)
        cached = self._caches(docs)
        layers = self._source.find(docs, self.settled(), cached=cached)
        return Layers(layers), no_backprop

    def _warn_of_boundaries(self, docs: list[Doc]) -> None:
        """A component from another pipeline cannot know its place in this one, nor so
        whether it will see the sentence boundaries that docs have by now."""
        if get_settings(self.model).segments == "auto" and self._nlp() is None:
            if any(d.has_annotation("SENT_START") and not get_data(d) for d in docs):
                warnings.warn(
                    f"{self.name} comes from another pipeline and may read docs "
                    "without sentence boundaries later, while it learns with them; "
                    f'expected annotating_components = ["{self.name}"], or other '
                    "'segments' than \"auto\"",
                    stacklevel=2,
                )

    def _caches(self, docs: list[Doc]) -> bool:
        """RETURNS (bool): Whether predictions for docs go through the cache. In
        training, components may predict what later ones learn from."""
        learning = self._hand_over is not None and self._hand_over.has(docs)
        wanted = ("training", "always") if learning else ("always",)
        return self._frozen and self.storage.cache_layers in wanted

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[Output]:
        """RETURNS (list[Output]): What set_annotations takes."""
        outputs = self._predict(list(docs))
        if not self._shim.keep_softmax:
            return outputs
        readings = [output.reading for output in outputs]
        bits = read_surprisal(self._shim.bilm, readings)
        return [output._replace(surprisal=b) for output, b in zip(outputs, bits)]

    def _predict(self, docs: list[Doc]) -> list[Output]:
        ops = self.model.ops
        readings = [read_doc(doc, get_settings(self.model)) for doc in docs]
        if self._caches(docs):
            shares = ops.asarray1f(self._shares())
            stacks = self._source.compute(readings, cached=True)
            return [
                Output(reading, weighted_sum(shares, layers), layers)
                for reading, layers in zip(readings, stacks)
            ]
        keep = self.storage.store_layers != "none" or bool(self.listener_map)
        vectors, kept = read_vectors(
            self.model, readings, self._shares(), keep_layers=keep
        )
        return [
            Output(
                reading,
                to_array(ops, mixed),
                None if layers is None else to_array(ops, layers),
            )
            for reading, mixed, layers in zip(readings, vectors, kept)
        ]

    def set_annotations(self, docs: Sequence[Doc], outputs: list[Output]) -> None:
        """Set doc.tensor and doc._.elmo."""
        shares = self._shares()
        for doc, output in zip(docs, outputs):
            vectors, layers = self._stored(output)
            exact = layers is not None and layers.dtype == "float32"
            data: ElmoData = {
                "words": doc.to_array("ORTH"),
                "key": output.reading.key,
                "bounds": output.reading.bounds,
                "stateful": output.reading.stateful,
                "weights": self._shim.fingerprint,
                "mix": shares,
                "layers": layers,
                "vectors": None if exact else vectors,
                "surprisal": output.surprisal,
            }
            doc.tensor = vectors
            for name in ("vector", "vector_norm"):
                setattr(doc, name, None)  # so that they follow the tensor
            set_data(doc, data)
            if self.listener_map and output.layers is not layers:
                assert output.layers is not None
                self._source.remember(data["weights"], data["key"], output.layers)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Apply the component to a stream of docs, as many at a time as batch_size and
        memory allow."""
        handle = self.get_error_handler()
        self._source.forget()
        self._source.n_recent = 2 * batch_size  # one batch here, one downstream
        for docs in _batches(stream, batch_size):
            yield from self._annotated(docs, handle)

    def _annotated(self, docs: list[Doc], handle: Callable[..., Any]) -> list[Doc]:
        try:
            self.set_annotations(docs, self.predict(docs))
            return docs
        except Exception as error:
            if len(docs) == 1:
                handle(self.name, self, docs, error)
                return []
            # One bad doc should not take its neighbours with it.
            return [good for doc in docs for good in self._annotated([doc], handle)]

    def _stored(self, output: Output) -> tuple[Any, Any]:
        """RETURNS: The vectors and layers as a doc keeps them."""
        vectors: Any = output.vectors
        layers: Any = output.layers
        if self.storage.store_layers == "none":
            layers = None
        elif layers is not None and self.storage.store_dtype == "float16":
            layers = layers.astype("float16")
        if self.storage.store_layers != "device":
            ops = self.model.ops
            vectors = ops.to_numpy(vectors)
            layers = None if layers is None else ops.to_numpy(layers)
        return vectors, layers

    def _shares(self) -> list[float]:
        n_layers, _ = self.sizes()
        if self.mix is None:
            return [1 / n_layers] * n_layers
        if len(self.mix) != n_layers:
            raise ValueError(
                f"elmo: mix has {len(self.mix)} numbers; expected {n_layers}, one for "
                "each layer of the biLM and one for its token vectors"
            )
        return self.mix

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Compute the layers of a batch for the listeners. Their gradients, if the biLM
        is not frozen, arrive after this and are used by finish_update."""
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._learns = True
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        self._losses = losses
        self._end()
        if self.listener_map and examples:
            docs = [example.predicted for example in examples]
            self._begin(docs, get_settings(self.model))
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the biLM, unless it is frozen."""
        self._sgd = sgd
        # nlp.update calls this before the listeners have had their turn, `spacy train`
        # afterwards. In the first case the step is made when the next update begins.
        if self._hand_over is None or self._hand_over.taken:
            self._end()

    def _begin(self, docs: list[Doc], settings: Settings) -> None:
        self._end()
        if self._frozen or not self._learns:
            cached = self._frozen and self.storage.cache_layers != "none"
            layers = Layers(self._source.find(docs, settings, cached=cached))
            self._hand_over = HandOver(docs, layers, no_backprop)
        else:
            layers, backprop = begin_layers(self.model, docs, settings)
            self._hand_over = HandOver(docs, layers, backprop)

    def _end(self) -> None:
        """Pass the gradients of the last batch to the biLM and, if it is time, make a
        step."""
        if self._hand_over is not None:
            loss = self._hand_over.finish()
            self._losses[self.name] = self._losses.get(self.name, 0.0) + loss
            self._hand_over = None
        if self._sgd is not None and not self._frozen:
            self.model.finish_update(self._sgd)
        self._sgd = None

    def get_loss(self, examples: Any, scores: Any) -> tuple[float, Any]:
        raise NotImplementedError("elmo has no loss of its own: its listeners have")

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        bilm: str | None = None,
    ) -> None:
        """Load the weights.

        bilm (str | None): Where from; by default, from the `bilm` of the config.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        if nlp is not None:
            self.watch(nlp)
        self._shim.load(bilm)
        self.model.initialize()

    def add_label(self, label: str) -> int:
        raise NotImplementedError("elmo has no labels")

    @property
    def _shim(self) -> BiLMShim:
        return get_shim(self.model)

    @property
    def _frozen(self) -> bool:
        return get_settings(self.model).frozen


# On import, so that docs made elsewhere can be looked at too.
install_extensions()


def _batches(stream: Iterable[Doc], batch_size: int) -> Iterator[list[Doc]]:
    docs: list[Doc] = []
    n_tokens = 0
    for doc in stream:
        docs.append(doc)
        n_tokens += len(doc)
        if len(docs) == batch_size or n_tokens >= MAX_CALL_TOKENS:
            yield docs
            docs, n_tokens = [], 0
    if docs:
        yield docs
