"""Where the layers that listeners ask for come from."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats3d

from ..layers.arrays import to_array
from ..layers.elmo_model import get_shim, read_layers
from ..layers.encode_docs import MAX_CALL_TOKENS
from ..layers.segments import Reading, read_doc, reread_doc
from ..layers.settings import Settings, Storage
from ..layers.types import ElmoModelT
from .doc_data import get_data
from .layer_cache import LayerCache

MAX_RECENT_TOKENS = 2 * MAX_CALL_TOKENS


class LayerSource:
    """Finds the layers of docs: on the docs, among those of the last batches, in the
    cache, or by computing them.

    model (Model[list[Doc], Layers]): The model.
    storage (Storage): How large the cache is, and where.

    n_recent (int): How many docs to remember that do not keep their layers, for the
        components that come next; of MAX_RECENT_TOKENS tokens at most.
    """

    def __init__(self, model: ElmoModelT, storage: Storage) -> None:
        self.model = model
        self.storage = storage
        self.n_recent = 2
        self._recent: OrderedDict[tuple[str, bytes], Floats3d] = OrderedDict()
        self._n_tokens = 0
        self._cache: LayerCache | None = None
        self._cache_weights = ""

    def remember(self, weights: str, key: bytes, layers: Floats3d) -> None:
        """weights (str): The fingerprint of the biLM. key (bytes): Reading.key."""
        self._n_tokens += len(layers) - len(self._recent.get((weights, key), ()))
        self._recent[weights, key] = layers
        while len(self._recent) > self.n_recent or self._n_tokens > MAX_RECENT_TOKENS:
            _, oldest = self._recent.popitem(last=False)
            self._n_tokens -= len(oldest)

    def forget(self) -> None:
        """Drop what was remembered of other texts."""
        self._recent.clear()
        self._n_tokens = 0

    def find(
        self, docs: list[Doc], settings: Settings, *, cached: bool
    ) -> list[Floats3d]:
        """settings (Settings): How docs are read on which the component has not run.
        RETURNS (list[Floats3d]): What the component found for docs when it ran on them,
            as far as that is at hand and still true; otherwise what it finds now."""
        known = [self._recall(doc, settings) for doc in docs]
        missing = [reading for reading, layers in known if layers is None]
        computed = iter(self.compute(missing, cached=cached))
        return [next(computed) if layers is None else layers for _, layers in known]

    def _recall(self, doc: Doc, settings: Settings) -> tuple[Reading, Floats3d | None]:
        data = get_data(doc)
        if (
            data is not None
            and data["weights"] == get_shim(self.model).fingerprint
            and data["stateful"] == settings.stateful
        ):
            # Sentence boundaries may have been set since: read it as it was.
            reading = reread_doc(doc, data["bounds"], data["stateful"])
            if reading is not None and reading.key == data["key"]:
                layers = self._recent.get((data["weights"], data["key"]))
                if layers is None:
                    layers = data["layers"]
                    if layers is not None and layers.dtype != "float32":
                        layers = None
                if layers is not None:
                    layers = self.model.ops.asarray3f(layers)
                return reading, layers
        return read_doc(doc, settings), None

    def compute(self, readings: list[Reading], *, cached: bool) -> list[Floats3d]:
        """RETURNS (list[Floats3d]): Layers, from the cache or for the cache."""
        ops = self.model.ops
        if not cached:
            return [to_array(ops, t) for t in read_layers(self.model, readings)]
        cache = self._get_cache()
        keys = [reading.key for reading in readings]
        found: dict[bytes, Any] = {key: cache.get(key) for key in keys}
        missing = {
            key: reading for key, reading in zip(keys, readings) if found[key] is None
        }
        tensors = read_layers(self.model, list(missing.values()))
        for key, tensor in zip(missing, tensors):
            found[key] = to_array(ops, tensor)
            cache.put(key, found[key])
        return [found[key] for key in keys]

    def _get_cache(self) -> LayerCache:
        shim = get_shim(self.model)
        if self._cache is None or self._cache_weights != shim.fingerprint:
            folder = self.storage.cache_folder
            self._cache = LayerCache(
                self.model.ops,
                shim.sizes,
                memory=self.storage.cache_memory_mb * 2**20,
                folder=None if folder is None else Path(folder) / shim.fingerprint,
            )
            self._cache_weights = shim.fingerprint
        return self._cache
