"""The settings for segmenting and encoding docs."""

from dataclasses import asdict, dataclass
from typing import Any

SEGMENTS = ("auto", "sentences", "punctuation", "windows")


@dataclass
class EncodingSettings:
    """How docs are cut into segments, and how many tokens are encoded at a time.

    segments (str): What the biLM treats as one sentence. "punctuation": segments end
        after sentence-final punctuation, as in pretraining, and boundaries are ignored.
        "auto": the sentences of a doc if its sentence boundaries are set, otherwise
        windows. "sentences": the same, but a doc without boundaries raises an error.
        "windows": windows, whatever the boundaries and the punctuation.
    window (int): The maximum number of tokens in a segment. Longer sentences are cut
        into windows.
    overlap (int): How many tokens a window shares with the next one.
    stateful (bool): Start each segment from the final LSTM states of the segment before
        it. Windows do not overlap then. Each doc starts from zero states.
    max_batch_tokens (int): The maximum number of tokens in a batch.
    """

    segments: str = "punctuation"
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
