"""Make layer caches with invented layers."""

import numpy as np
from thinc.api import NumpyOps

from spacy_elmo.pipeline.layer_cache import LayerCache

SHAPE = (3, 12)


def key(number):
    return bytes([number]) * 15 + b"\0"


def layers(number):
    return np.full((number, *SHAPE), number, dtype="float32") + np.arange(12) / 7


def make_cache(memory=0, folder=None, numbers=(), ops=None):
    cache = LayerCache(ops or NumpyOps(), SHAPE, memory=memory, folder=folder)
    for number in numbers:
        cache.put(key(number), layers(number).astype("float32"))
    return cache


def found(cache, numbers=range(5)):
    """Return the numbers whose layers are in a cache, and check these layers."""
    results = {number: cache.get(key(number)) for number in numbers}
    for number, array in results.items():
        if array is not None:
            assert array.dtype == "float32"
            assert np.array_equal(array, layers(number).astype("float32"))
    return [number for number, array in results.items() if array is not None]
