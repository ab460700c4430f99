"""The settings for storing layers on docs and for caching them."""

from dataclasses import asdict, dataclass
from typing import Any

STORE_LAYERS = ("device", "cpu", "none")
SET_TENSOR = ("auto", "always", "never")
STORE_DTYPES = ("float32", "float16")
CACHE_LAYERS = ("none", "training", "always")


@dataclass
class StorageSettings:
    """What the component stores on docs, and which layers it caches.

    set_tensor (str): When to set doc.tensor: "always", "never", or "auto", that is,
        unless a later component, such as a tagger with spaCy's Tok2VecListener, reads
        the vectors that an earlier component has set there.
    store_layers (str): Where docs keep their layers: on the "device" that computed
        them, on the "cpu", or nowhere ("none"). With "cpu" and "none", doc.tensor is on
        the CPU too, so that docs take no GPU memory.
    store_dtype (str): The dtype of stored layers: "float32", or "float16" for half the
        memory.
    cache_layers (str): When to cache the layers of a frozen biLM: only in "training",
        where every epoch has the same docs, "always", or never ("none").
    cache_memory_mb (int): How many megabytes the cache may hold in memory. The rest is
        written to disk.
    cache_folder (str | None): A folder that keeps the whole cache for later runs. By
        default the cache is deleted when the process ends.
    """

    set_tensor: str = "auto"
    store_layers: str = "device"
    store_dtype: str = "float32"
    cache_layers: str = "training"
    cache_memory_mb: int = 2048
    cache_folder: str | None = None

    def __post_init__(self) -> None:
        for name, expected in (
            ("set_tensor", SET_TENSOR),
            ("store_layers", STORE_LAYERS),
            ("store_dtype", STORE_DTYPES),
            ("cache_layers", CACHE_LAYERS),
        ):
            if getattr(self, name) not in expected:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; expected one of {expected}"
                )
        if self.cache_memory_mb < 0:
            raise ValueError(
                f"cache_memory_mb is {self.cache_memory_mb}; expected 0 or more"
            )
        if "\0" in (self.cache_folder or ""):
            raise ValueError(
                f"cache_folder is {self.cache_folder!r}; expected a name without NUL"
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
