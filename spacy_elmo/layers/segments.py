"""From docs to the sentences a biLM sees, and back."""

from hashlib import blake2b

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.tokens import Doc

from ..text.sentence_starts import find_starts
from .settings import Settings


class Reading:
    """How a doc is read: its words, whitespace left out, in segments.

    doc (Doc): The doc.
    bounds (np.ndarray): A row a segment, (n_segments, 4), counted in words: its begin
        and end, and from where to where the vectors of its words count.
    stateful (bool): Whether segments depend on the ones before them.
    """

    def __init__(self, doc: Doc, bounds: np.ndarray, stateful: bool) -> None:
        self.doc = doc
        self.bounds = bounds
        self.stateful = stateful
        self.tokens = np.flatnonzero(doc.to_array(IS_SPACE) == 0)
        self.n_tokens = len(doc)

    @property
    def key(self) -> bytes:
        """Equal for docs that get the same vectors from the same weights."""
        key = blake2b(self.doc.to_array(ORTH).tobytes(), digest_size=16)
        key.update(self.bounds.tobytes() + bytes([self.stateful]))
        return key.digest()

    @property
    def segments(self) -> list[list[str]]:
        """RETURNS (list[list[str]]): The words of each segment."""
        words = [token.text for token in self.doc]
        if len(self.tokens) < len(words):
            words = [words[i] for i in self.tokens]
        return [words[begin:end] for begin, end, _, _ in self.bounds.tolist()]


def read_doc(doc: Doc, settings: Settings) -> Reading:
    """Cut a doc into segments."""
    n_words = len(doc) - int(doc.to_array(IS_SPACE).sum())
    begins = [0]
    if settings.segments == "punctuation":
        begins = _in_words(doc, find_starts(doc))
    elif settings.segments != "windows":
        if doc.has_annotation("SENT_START"):
            begins = _sentences(doc)
        elif settings.segments == "sentences" and len(doc):
            raise ValueError(
                "elmo: segments is 'sentences' and a doc has no sentence boundaries; "
                "put a component that sets them before it, such as 'sentencizer' or "
                "'senter', or choose segments = 'auto'"
            )
    overlap = 0 if settings.stateful else settings.overlap
    rows: list[np.ndarray] = []
    for begin, end in zip(begins, [*begins[1:], n_words]):
        if begin < end:
            rows.append(begin + windows(end - begin, settings.window, overlap))
    bounds = np.concatenate(rows) if rows else np.zeros((0, 4))
    return Reading(doc, bounds.astype(np.int32), settings.stateful)


def reread_doc(doc: Doc, bounds: np.ndarray, stateful: bool) -> Reading | None:
    """Read a doc as it was read before. RETURNS: None if it is no longer the same."""
    reading = Reading(doc, np.array(bounds, dtype=np.int32), stateful)
    n_words = reading.bounds[-1, 1] if len(reading.bounds) else 0
    return reading if len(reading.tokens) == n_words else None


def _sentences(doc: Doc) -> list[int]:
    """RETURNS (list[int]): Where sentences begin, counted in words."""
    starts = np.flatnonzero(doc.to_array(SENT_START).astype(np.int64) == 1)
    if "sents" in doc.user_hooks:
        starts = np.array([sentence.start for sentence in doc.sents], dtype=np.int64)
    return _in_words(doc, starts)


def _in_words(doc: Doc, starts: np.ndarray) -> list[int]:
    """RETURNS (list[int]): The first token, and these, counted in words."""
    if not len(doc):
        return [0]
    is_word = doc.to_array(IS_SPACE) == 0
    words_before = np.cumsum(is_word) - is_word
    return np.unique(words_before[np.union1d(starts, [0]).astype(np.int64)]).tolist()


def windows(n: int, size: int, overlap: int) -> np.ndarray:
    """Cut n words into windows. Each word's vectors come from the window in which it is
    farther from the nearer edge.

    RETURNS (np.ndarray): As Reading.bounds.
    """
    if n <= size:
        return np.array([[0, n, 0, n]])
    n_windows = -(-(n - overlap) // (size - overlap))
    begins = np.arange(n_windows) * (size - overlap)
    if overlap:
        begins[-1] = n - size  # as much context as there is
    ends = np.minimum(begins + size, n)
    cuts = (begins[1:] + ends[:-1]) // 2
    return np.stack([begins, ends, np.append(0, cuts), np.append(cuts, n)], axis=1)
