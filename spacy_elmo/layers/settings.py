"""How docs are read, checked once."""

from dataclasses import asdict, dataclass
from typing import Any

SEGMENTS = ("auto", "sentences", "punctuation", "windows")
STORE_LAYERS = ("device", "cpu", "none")
STORE_DTYPES = ("float32", "float16")
CACHE_LAYERS = ("none", "training", "always")


@dataclass
class Settings:
    """What a model that reads docs needs to know beside its weights.

    frozen (bool): Training leaves the biLM as it is.
    segments (str): What the biLM sees as a sentence: "auto" takes the sentences of a
        doc where boundaries are set and windows otherwise, "sentences" refuses docs
        without boundaries, "punctuation" cuts after what ends sentences, as pretraining
        does, whatever boundaries are set, "windows" never looks at them.
    window (int): No segment has more tokens; what is longer is cut.
    overlap (int): Tokens that a window shares with the next one.
    stateful (bool): Within a doc, a segment starts from the states in which the one
        before it ended, and windows do not overlap. Each doc starts from zero.
    max_batch_tokens (int): Tokens computed at a time.
    """

    frozen: bool = True
    segments: str = "auto"
    window: int = 256
    overlap: int = 64
    stateful: bool = False
    max_batch_tokens: int = 8192

    def __post_init__(self) -> None:
        if self.segments not in SEGMENTS:
            raise ValueError(
                f"segments is {self.segments!r}; expected one of {SEGMENTS}"
            )
        if self.window < 1:
            raise ValueError(f"window is {self.window}; expected 1 or more")
        if not 0 <= self.overlap <= self.window // 2:
            raise ValueError(
                f"overlap is {self.overlap}; expected 0 to {self.window // 2}, half "
                "the window"
            )
        if self.max_batch_tokens < 1:
            raise ValueError(
                f"max_batch_tokens is {self.max_batch_tokens}; expected 1 or more"
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Storage:
    """What the component keeps, and where.

    store_layers (str): Whether docs keep their layers: on the "device" they were
        computed on, on the "cpu", or not at all ("none"). With "cpu" and "none",
        doc.tensor is on the CPU too, so that docs that are kept hold no GPU memory.
    store_dtype (str): "float32", or "float16" for half the memory.
    cache_layers (str): With a frozen biLM, remember the layers of texts: in "training",
        which reads the same docs in each epoch, "always", or never ("none").
    cache_memory_mb (int): What comes after that many megabytes goes to disk.
    cache_folder (str | None): Keep all of the cache in a folder, for later runs; by
        default it ends with the process.
    """

    store_layers: str = "device"
    store_dtype: str = "float32"
    cache_layers: str = "training"
    cache_memory_mb: int = 2048
    cache_folder: str | None = None

    def __post_init__(self) -> None:
        for name, expected in (
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
