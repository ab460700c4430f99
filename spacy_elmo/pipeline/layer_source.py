"""Find the layers that listeners ask for, or compute them."""

import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats3d

from ..layers.elmo_model import get_shim, predict_layers
from ..layers.encode_docs import MAX_CALL_TOKENS
from ..layers.segments import SegmentedDoc, segment_as_before, segment_doc
from ..layers.settings import EncodingSettings
from ..layers.types import ElmoModelT
from .doc_data import get_data
from .layer_cache import LayerCache
from .storage_settings import StorageSettings

MAX_RECENT_TOKENS = 2 * MAX_CALL_TOKENS


class LayerSource:
    """Finds the layers of docs: among those of recent docs, on the doc itself, or in
    the cache. Layers that are in none of these places are computed.

    model (Model[list[Doc], Layers]): The model that computes layers.
    storage (StorageSettings): The size and the folder of the cache.

    n_recent (int): The maximum number of recent docs whose layers are remembered.
        Downstream components need them if docs do not store their layers. In total,
        these docs have at most MAX_RECENT_TOKENS tokens.
    n_recent_tokens (int): The number of tokens in the remembered docs.
    ignored_folder (str | None): The cache_folder of a loaded pipeline, which is not
        used.
    """

    def __init__(self, model: ElmoModelT, storage: StorageSettings) -> None:
        self.model = model
        self.storage = storage
        self.n_recent = 2
        self.n_recent_tokens = 0
        self.ignored_folder: str | None = None
        self._recent: OrderedDict[tuple[str, bytes], Floats3d] = OrderedDict()
        self._cache: LayerCache | None = None
        self._cache_weights = ""

    def remember(self, weights: str, key: bytes, layers: Floats3d) -> None:
        """Remember the layers of a recent doc, and forget the oldest if necessary.

        weights (str): The fingerprint of the biLM.
        key (bytes): The key of the SegmentedDoc.
        layers (Floats3d): (n_tokens, n_layers + 1, width).
        """
        self.n_recent_tokens += len(layers) - len(self._recent.get((weights, key), ()))
        self._recent[weights, key] = layers
        while (
            len(self._recent) > self.n_recent
            or self.n_recent_tokens > MAX_RECENT_TOKENS
        ):
            _, oldest = self._recent.popitem(last=False)
            self.n_recent_tokens -= len(oldest)

    def forget(self) -> None:
        """Forget all recent docs."""
        self._recent.clear()
        self.n_recent_tokens = 0

    def find(
        self,
        docs: list[Doc],
        settings: EncodingSettings,
        *,
        component: str,
        cached: bool,
    ) -> list[Floats3d]:
        """Return the layers of docs. Layers that are stored and still valid are used,
        and the layers of all other docs are computed.

        settings (EncodingSettings): How to segment docs on which the component has not
            run.
        component (str): The name of the component. Layers that one of another name has
            stored are not used, because its settings may differ.
        cached (bool): Whether to use the cache.
        RETURNS (list[Floats3d]): (n_tokens, n_layers + 1, width) for each doc.
        """
        known = [self._recall(doc, settings, component) for doc in docs]
        missing = [segmented for segmented, layers in known if layers is None]
        computed = iter(self.compute(missing, cached=cached))
        return [next(computed) if layers is None else layers for _, layers in known]

    def _recall(
        self, doc: Doc, settings: EncodingSettings, component: str
    ) -> tuple[SegmentedDoc, Floats3d | None]:
        data = get_data(doc)
        if (
            data is not None
            and data["weights"] == get_shim(self.model).fingerprint
            and data["stateful"] == settings.stateful
            # Docs that were saved by older releases do not name the component.
            and data.get("component", component) == component
        ):
            # A later component may have set other sentence boundaries since.
            segmented = segment_as_before(doc, data["bounds"], data["stateful"])
            if segmented is not None and segmented.key == data["key"]:
                layers = self._recent.get((data["weights"], data["key"]))
                if layers is None:
                    layers = data["layers"]
                    if layers is not None and layers.dtype != "float32":
                        layers = None
                if layers is not None:
                    layers = self.model.ops.asarray3f(layers)
                return segmented, layers
        return segment_doc(doc, settings), None

    def compute(self, docs: list[SegmentedDoc], *, cached: bool) -> list[Floats3d]:
        """Compute the layers of docs, (n_tokens, n_layers + 1, width) for each doc. If
        cached, take layers from the cache, and add to it those that it did not have."""
        if not cached:
            return predict_layers(self.model, docs)
        cache = self._get_cache()
        keys = [doc.key for doc in docs]
        found: dict[bytes, Any] = {key: cache.get(key) for key in keys}
        missing = {key: doc for key, doc in zip(keys, docs) if found[key] is None}
        computed = predict_layers(self.model, list(missing.values()))
        for key, layers in zip(missing, computed):
            found[key] = layers
            cache.put(key, layers)
        return [found[key] for key in keys]

    def _get_cache(self) -> LayerCache:
        shim = get_shim(self.model)
        if self._cache is None or self._cache_weights != shim.fingerprint:
            folder = self.storage.cache_folder
            if folder is None and self.ignored_folder is not None:
                warnings.warn(
                    f"elmo: the cache_folder {self.ignored_folder!r} is not used, "
                    "because it comes from a saved pipeline; to use it, set "
                    "storage.cache_folder of the component",
                    stacklevel=2,
                )
                self.ignored_folder = None
            self._cache = LayerCache(
                self.model.ops,
                shim.sizes,
                memory=self.storage.cache_memory_mb * 2**20,
                folder=None if folder is None else Path(folder) / shim.fingerprint,
            )
            self._cache_weights = shim.fingerprint
        return self._cache
