"""Cut docs into segments. The biLM treats each segment as one sentence.

A segment is a sentence of the doc or, where a sentence is too long or boundaries are
not set, a window. Windows overlap, so that the words near an edge have context on both
sides. An example with 6 words per window and an overlap of 2 follows. A word gets its
vectors from the window where it is in brackets:

    words       a b c d e f g h i j k l m n
    window 1   [a b c d e]f
    window 2            e[f g h i]j
    window 3                    i[j k l m n]
"""

from hashlib import blake2b

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.tokens import Doc

from ..text.sentence_starts import find_sentence_starts
from .settings import EncodingSettings


class SegmentedDoc:
    """The words of a doc, without its whitespace tokens, cut into segments.

    doc (Doc): The doc.
    bounds (np.ndarray): Four positions in the list of words for each segment,
        (n_segments, 4): where the segment begins and ends, and where the words that get
        their vectors from it begin and end.
    stateful (bool): Whether each segment depends on the segments before it.
    """

    def __init__(self, doc: Doc, bounds: np.ndarray, stateful: bool) -> None:
        self.doc = doc
        self.bounds = bounds
        self.stateful = stateful
        self.tokens = np.flatnonzero(doc.to_array(IS_SPACE) == 0)
        self.n_tokens = len(doc)

    @property
    def key(self) -> bytes:
        """Return a hash of the words and segments, 16 bytes. Docs with the same key get
        the same layers from the same weights."""
        key = blake2b(self.doc.to_array(ORTH).tobytes(), digest_size=16)
        key.update(self.bounds.tobytes() + bytes([self.stateful]))
        return key.digest()

    @property
    def segments(self) -> list[list[str]]:
        """Return the words of each segment."""
        words = [token.text for token in self.doc]
        if len(self.tokens) < len(words):
            words = [words[i] for i in self.tokens]
        return [words[begin:end] for begin, end, _, _ in self.bounds.tolist()]


def segment_doc(doc: Doc, settings: EncodingSettings) -> SegmentedDoc:
    """Cut a doc into segments."""
    n_words = len(doc) - int(doc.to_array(IS_SPACE).sum())
    begins = [0]
    if settings.segments == "punctuation":
        begins = _word_positions(doc, find_sentence_starts(doc))
    elif settings.segments != "windows":
        if doc.has_annotation("SENT_START"):
            begins = _sentence_begins(doc)
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
    return SegmentedDoc(doc, bounds.astype(np.int32), settings.stateful)


def segment_as_before(
    doc: Doc, bounds: np.ndarray, stateful: bool
) -> SegmentedDoc | None:
    """Cut a doc into the same segments as before, even if its sentence boundaries have
    changed.

    bounds (np.ndarray): The bounds of the earlier SegmentedDoc, (n_segments, 4).
    stateful (bool): Whether the earlier SegmentedDoc was stateful.
    RETURNS (SegmentedDoc | None): None if the number of words has changed.
    """
    segmented = SegmentedDoc(doc, np.array(bounds, dtype=np.int32), stateful)
    n_words = segmented.bounds[-1, 1] if len(segmented.bounds) else 0
    return segmented if len(segmented.tokens) == n_words else None


def _sentence_begins(doc: Doc) -> list[int]:
    """Return where sentences begin, as positions in the list of words."""
    starts = np.flatnonzero(doc.to_array(SENT_START).astype(np.int64) == 1)
    if "sents" in doc.user_hooks:
        starts = np.array([sentence.start for sentence in doc.sents], dtype=np.int64)
    return _word_positions(doc, starts)


def _word_positions(doc: Doc, starts: np.ndarray) -> list[int]:
    """Convert token indices to positions in the list of words, which has no whitespace
    tokens, and add position 0."""
    if not len(doc):
        return [0]
    is_word = doc.to_array(IS_SPACE) == 0
    words_before = np.cumsum(is_word) - is_word
    return np.unique(words_before[np.union1d(starts, [0]).astype(np.int64)]).tolist()


def windows(n: int, size: int, overlap: int) -> np.ndarray:
    """Cut n words into windows. A word that is in two windows gets its vectors from the
    window in which it is farther from the edge.

    size (int): The number of words in a window.
    overlap (int): How many words a window shares with the next one.
    RETURNS (np.ndarray): (n_windows, 4), with the columns of SegmentedDoc.bounds.
    """
    if n <= size:
        return np.array([[0, n, 0, n]])
    n_windows = -(-(n - overlap) // (size - overlap))
    begins = np.arange(n_windows) * (size - overlap)
    if overlap:
        begins[-1] = n - size  # fill the last window too, for more context
    ends = np.minimum(begins + size, n)
    cuts = (begins[1:] + ends[:-1]) // 2
    return np.stack([begins, ends, np.append(0, cuts), np.append(cuts, n)], axis=1)
