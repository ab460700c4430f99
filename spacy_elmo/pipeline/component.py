"""The spaCy component `elmo`."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Optimizer
from thinc.types import Floats2d, Floats3d

from ..layers.elmo_model import (
    begin_layers,
    get_settings,
    get_shim,
    no_backprop,
    predict_vectors,
)
from ..layers.encode_docs import batch_by_tokens, compute_surprisal
from ..layers.listener import KnownBiLM, Replacement
from ..layers.mix import check_shares, weighted_sum
from ..layers.segments import SegmentedDoc, segment_doc
from ..layers.settings import EncodingSettings
from ..layers.shim import BiLMShim
from ..layers.types import ElmoModelT, Layers, LayersBackprop
from .doc_data import ElmoData, install_extensions, set_data
from .hand_over import HandOver
from .layer_source import LayerSource
from .position import PipelinePosition
from .saved_pipe import SavedPipe
from .storage_settings import StorageSettings


class DocOutput(NamedTuple):
    """The prediction for a doc.

    segmented (SegmentedDoc): The doc and its segments.
    vectors (Floats2d): (n_tokens, width).
    layers (Floats3d | None): (n_tokens, n_layers + 1, width); None if not needed.
    surprisal (np.ndarray | None): (n_tokens, 2); None if not needed.
    """

    segmented: SegmentedDoc
    vectors: Floats2d
    layers: Floats3d | None
    surprisal: np.ndarray | None = None


class Elmo(SavedPipe):
    """Sets doc._.elmo and usually doc.tensor, and gives downstream components the
    layers.

    vocab (Vocab): The shared vocabulary.
    model (Model[list[Doc], Layers]): The model, built by ElmoModel.
    name (str): The name of the component.
    mix (list[float] | None): The share of each layer in doc.tensor, (n_layers + 1,);
        None for the mean of all layers.
    storage (StorageSettings | None): What to store on docs and what to cache.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: ElmoModelT,
        name: str = "elmo",
        *,
        mix: list[float] | None = None,
        storage: StorageSettings | None = None,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.mix = mix
        self.storage = storage or StorageSettings()
        self.position = PipelinePosition()
        self.cfg: dict[str, Any] = {}
        self.listener_map = {}
        self._source = LayerSource(model, self.storage)
        Replacement(self).install(model)
        self._hand_over: HandOver | None = None
        self._losses: dict[str, float] = {}
        self._sgd: Optimizer | None = None
        # True after the first `update`. spaCy never updates a frozen component.
        self._learns = False
        self._warned = False

    def __reduce__(self) -> Any:
        # Do not pickle the current training batch, the cache and the pipeline.
        state: dict[str, Any] = {"cfg": self.cfg, "mix": self.mix}
        state["storage"] = self.storage
        state["listener_map"] = self.listener_map
        state["position"] = self.position.without_pipelines(self)
        if hasattr(self, "error_handler"):
            state["error_handler"] = self.error_handler
        return Elmo, (self.vocab, self.model, self.name), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._source = LayerSource(self.model, self.storage)

    @property
    def mix(self) -> list[float] | None:
        """Return the share of each layer in the vectors; None for their mean."""
        return self._mix

    @mix.setter
    def mix(self, mix: list[float] | None) -> None:
        if mix is not None:
            check_shares(f"{self.name}: mix", mix)
        self._mix = mix

    # Listeners

    def known_bilm(self) -> KnownBiLM | None:
        """Return which biLM this is; None while it learns."""
        shim = self._shim
        if shim.updated or (self._learns and not shim.frozen):
            return None
        return KnownBiLM(shim.name, shim.identity)

    def sizes(self) -> tuple[int, int]:
        """Return the number of layers, token vectors included, and the width."""
        return self._shim.sizes

    def resolve_settings(self) -> EncodingSettings:
        """Return the settings with which this component segments docs at its position
        in the pipeline. If no earlier component sets sentence boundaries, "auto" is
        replaced by "windows", because any boundaries come from a later component."""
        settings = get_settings(self.model)
        if settings.segments == "auto" and not self.position.sees_boundaries(self):
            return replace(settings, segments="windows")
        return settings

    def provide_layers(
        self, docs: list[Doc], is_train: bool
    ) -> tuple[Layers, LayersBackprop]:
        """Return the layers of docs for a listener. In training, these are the layers
        that `update` has computed. In prediction, these are the layers from which this
        component has computed doc.tensor; if they are not stored, they are computed
        again.

        RETURNS: The layers, and a callback that takes their gradients.
        """
        if is_train:
            if self._hand_over is None or not self._hand_over.has(docs):
                self._begin(docs, self.resolve_settings())
            assert self._hand_over is not None
            return self._hand_over.take(docs)
        layers = self._find_layers(
            docs, self.resolve_settings(), self._uses_cache(docs)
        )
        return Layers(layers), no_backprop

    def _find_layers(
        self, docs: list[Doc], settings: EncodingSettings, cached: bool
    ) -> list[Floats3d]:
        return self._source.find(docs, settings, component=self.name, cached=cached)

    def _uses_cache(self, docs: list[Doc]) -> bool:
        """Return whether to use the cache when layers are predicted. That also happens
        in training, if components annotate the docs for later components."""
        in_training = self._hand_over is not None and self._hand_over.has(docs)
        wanted = ("training", "always") if in_training else ("always",)
        return self._shim.frozen and self.storage.cache_layers in wanted

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[DocOutput]:
        """Compute the vectors of docs and, if needed, their layers and surprisal."""
        outputs = self._predict(list(docs))
        if not self._shim.keep_softmax:
            return outputs
        segmented = [output.segmented for output in outputs]
        bits = compute_surprisal(self._shim.bilm, segmented)
        return [output._replace(surprisal=b) for output, b in zip(outputs, bits)]

    def _predict(self, docs: list[Doc]) -> list[DocOutput]:
        segmented = [segment_doc(doc, get_settings(self.model)) for doc in docs]
        shares = self._get_shares()
        if self._uses_cache(docs):
            s = self.model.ops.asarray1f(shares)
            layers = self._source.compute(segmented, cached=True)
            vectors = [weighted_sum(s, stack) for stack in layers]
        else:
            needed = self.storage.store_layers != "none" or bool(self.listener_map)
            vectors, layers = predict_vectors(
                self.model, segmented, shares, keep_layers=needed
            )
        return [DocOutput(*output) for output in zip(segmented, vectors, layers)]

    def set_annotations(self, docs: Sequence[Doc], outputs: list[DocOutput]) -> None:
        """Set doc._.elmo and, unless a later component needs the doc.tensor of an
        earlier one, doc.tensor."""
        shares = self._get_shares()
        vocab = docs[0].vocab if docs else None
        sets_tensor = [self._sets_tensor(vocab, filled) for filled in (False, True)]
        for doc, output in zip(docs, outputs):
            vectors, layers = self._convert_for_storage(output)
            exact = layers is not None and layers.dtype == "float32"
            data: ElmoData = {
                "words": doc.to_array("ORTH"),
                "key": output.segmented.key,
                "bounds": output.segmented.bounds,
                "stateful": output.segmented.stateful,
                "weights": self._shim.fingerprint,
                "source": self._shim.name,
                "component": self.name,
                "mix": shares,
                "layers": layers,
                "vectors": None if exact else vectors,
                "surprisal": output.surprisal,
            }
            if sets_tensor[len(doc.tensor) == len(doc) > 0]:
                # A copy: users may change doc.tensor in place.
                doc.tensor = vectors if exact else vectors.copy()
                for name in ("vector", "vector_norm"):
                    setattr(doc, name, None)  # spaCy may have cached an older value
            set_data(doc, data)
            if self.listener_map and output.layers is not layers:
                assert output.layers is not None
                self._source.remember(data["weights"], data["key"], output.layers)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Apply the component to a stream of docs, in batches of at most batch_size
        docs, or fewer if they are long."""
        handle = self.get_error_handler()
        self._source.forget()
        self._source.n_recent = 2 * batch_size  # one batch here, one downstream
        for docs in batch_by_tokens(stream, len, batch_size):
            yield from self._annotate(docs, handle)

    def _annotate(self, docs: list[Doc], handle: Callable[..., Any]) -> list[Doc]:
        try:
            self.set_annotations(docs, self.predict(docs))
            return docs
        except Exception as error:
            if len(docs) == 1:
                handle(self.name, self, docs, error)
                return []
            # Try each doc alone, so that only the bad ones are lost.
            return [good for doc in docs for good in self._annotate([doc], handle)]

    def _convert_for_storage(self, output: DocOutput) -> tuple[Any, Any]:
        """Return the vectors and layers with the device and dtype in which the doc
        stores them."""
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

    def _sets_tensor(self, vocab: Vocab | None = None, filled: bool = True) -> bool:
        if self.storage.set_tensor == "never":
            return False
        width = None if vocab is None else self.sizes()[1]
        read = self.position.finds_reader(self, width=width, vocab=vocab, filled=filled)
        if self.storage.set_tensor == "auto":
            return not read
        if read and vocab is not None and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: set_tensor is 'always', but a later component reads the "
                "doc.tensor of an earlier one and gets wrong vectors; expected 'auto' "
                "or 'never'",
                stacklevel=2,
            )
        return True

    def _get_shares(self) -> list[float]:
        """Return the share of each layer in the vectors, (n_layers + 1,)."""
        n_layers, _ = self.sizes()
        if self.mix is None:
            return [1 / n_layers] * n_layers
        if len(self.mix) != n_layers:
            raise ValueError(
                f"elmo: mix has {len(self.mix)} numbers; expected {n_layers}, one for "
                "each layer of the biLM and one for its token vectors"
            )
        return [float(share) for share in self.mix]

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Compute the layers of a batch for the listeners. If the biLM is not frozen,
        the listeners' gradients arrive later, and finish_update uses them."""
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
        # `spacy train` calls this after the listeners' updates, nlp.update before them.
        # With nlp.update, the biLM is updated when the next `update` begins.
        if self._hand_over is None or self._hand_over.taken:
            self._end()

    def _begin(self, docs: list[Doc], settings: EncodingSettings) -> None:
        """Compute the layers of a training batch, with gradients if the biLM learns."""
        self._end()
        if self._shim.frozen or not self._learns:
            cached = self._shim.frozen and self.storage.cache_layers != "none"
            layers = Layers(self._find_layers(docs, settings, cached))
            backprop: LayersBackprop = no_backprop
        else:
            segmented = [segment_doc(doc, settings) for doc in docs]
            layers, backprop = begin_layers(self.model, segmented)
        self._hand_over = HandOver(docs, layers, backprop)

    def _end(self) -> None:
        """Backpropagate the gradients of the last batch and, if finish_update was
        called, update the biLM."""
        if self._hand_over is not None:
            loss = self._hand_over.finish()
            self._losses[self.name] = self._losses.get(self.name, 0.0) + loss
            self._hand_over = None
        if self._sgd is not None and not self._shim.frozen:
            self.model.finish_update(self._sgd)
        self._sgd = None

    def get_loss(self, examples: Any, scores: Any) -> tuple[float, Any]:
        raise NotImplementedError("elmo computes no loss: its listeners do")

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        bilm: str | None = None,
    ) -> None:
        """Load the weights.

        bilm (str | None): Where to load them from. By default, the weights of a saved
            pipeline are kept, and others are loaded from the `bilm` of the config.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        if nlp is not None:
            self.position.attach(nlp)
        self._shim.load(bilm)
        self.position.check_widths(self, self.sizes()[1])
        self.model.initialize()

    def add_label(self, label: str) -> int:
        raise NotImplementedError("elmo has no labels")

    @property
    def _shim(self) -> BiLMShim:
        shim = get_shim(self.model)
        if not shim.is_loaded:
            # The tokenizer may have been replaced since the component was made.
            shim.tokens = self.position.find_tokens(self, shim.tokens)
        return shim


# Importing this module installs the attributes, so docs from other processes have them.
install_extensions()
