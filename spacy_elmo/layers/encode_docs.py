"""Encode segmented docs with a biLM, without gradients."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..bilm import BiLMBase
from ..bilm.array_types import as_index
from ..bilm.state import State
from .segments import SegmentedDoc
from .settings import EncodingSettings

# The biLM sorts the segments of a call by length, which reduces padding. Larger calls
# would need more memory and have hardly less padding.
MAX_CALL_TOKENS = 2**16

Rows = Any  # a slice, or an index for arrays of the biLM's engine
ItemT = TypeVar("ItemT")


class Segment(NamedTuple):
    """A segment of a doc.

    doc (int): The index of the doc in the list of docs.
    words (list[str]): The words of the segment.
    keep (slice): Which of the words get their vectors from this segment.
    tokens (np.ndarray): For each of these words, its index in the doc, (n_kept,).
    """

    doc: int
    words: list[str]
    keep: slice
    tokens: np.ndarray


def encode_docs(
    bilm: BiLMBase,
    docs: Sequence[SegmentedDoc],
    settings: EncodingSettings,
    take: Callable[[int, Rows, Any], None],
) -> None:
    """Compute the layers of docs without gradients.

    take (Callable[[int, Rows, Any], None]): Called for each segment with the index
        of the doc, the indices of the tokens in it, and their layers,
        (n_rows, n_layers + 1, width). The layers are a view of a whole batch: copy what
        you want to keep.
    """

    def encode(segments: list[Segment], state: State | None) -> State | None:
        def finish(number: int, layers: Any) -> None:
            segment = segments[number]
            if len(segment.tokens):
                rows = _as_rows(segment.tokens, layers)
                take(segment.doc, rows, layers[segment.keep])

        _, state = bilm.run(
            [segment.words for segment in segments],
            state,
            max_batch_tokens=settings.max_batch_tokens,
            finish=finish,
        )
        return state

    encode_calls(bilm, docs, settings, encode)


def compute_surprisal(bilm: BiLMBase, docs: Sequence[SegmentedDoc]) -> list[np.ndarray]:
    """Compute the surprisal of each word in bits.

    RETURNS (list[np.ndarray]): (n_tokens, 2) for each doc: the surprisal given the
        words before, and given the words after. Zeros for whitespace.
    """
    segments = [s for number, doc in enumerate(docs) for s in _segments(number, doc)]
    bits = bilm.surprisal([segment.words for segment in segments])
    surprisal = [np.zeros((doc.n_tokens, 2), dtype=np.float32) for doc in docs]
    for segment, found in zip(segments, bits):
        surprisal[segment.doc][segment.tokens] = found[segment.keep]
    return surprisal


def encode_calls(
    bilm: BiLMBase,
    docs: Sequence[SegmentedDoc],
    settings: EncodingSettings,
    encode: Callable[[list[Segment], State | None], State | None],
) -> None:
    """Encode the segments of docs call by call. If stateful, pass the LSTM states of
    each segment to the next segment of the same doc.

    encode (Callable): Encodes the segments of a call. It takes the states before the
        segments and returns those after them, with a row for each segment, or None if
        not stateful.
    """
    if not settings.stateful:
        for segments in _calls(docs, stateful=False):
            encode(segments, None)
        return
    states = bilm.zero_state(len(docs))
    for segments in _calls(docs, stateful=True):
        numbers = [segment.doc for segment in segments]
        end = encode(segments, states.take(numbers))
        assert end is not None
        states.put(numbers, end)


def _calls(docs: Sequence[SegmentedDoc], *, stateful: bool) -> Iterator[list[Segment]]:
    """Group the segments of all docs into calls of the biLM. If stateful, a call has at
    most one segment of each doc, because the next segment starts from its states."""
    queues = [_segments(number, doc) for number, doc in enumerate(docs)]
    if not stateful:
        segments = (segment for queue in queues for segment in queue)
        yield from batch_by_tokens(segments, _count_words)
        return
    while queues:
        heads = [(next(queue, None), queue) for queue in queues]
        segments = (segment for segment, _ in heads if segment is not None)
        yield from batch_by_tokens(segments, _count_words)
        queues = [queue for segment, queue in heads if segment is not None]


def batch_by_tokens(
    items: Iterable[ItemT],
    count_tokens: Callable[[ItemT], int],
    max_items: int | None = None,
) -> Iterator[list[ItemT]]:
    """Group items into batches of about MAX_CALL_TOKENS tokens and at most max_items
    items. A batch is yielded as soon as it is full."""
    batch: list[ItemT] = []
    n_tokens = 0
    for item in items:
        batch.append(item)
        n_tokens += count_tokens(item)
        if len(batch) == max_items or n_tokens >= MAX_CALL_TOKENS:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch


def _count_words(segment: Segment) -> int:
    return len(segment.words)


def _segments(number: int, doc: SegmentedDoc) -> Iterator[Segment]:
    bounds = doc.bounds.tolist()
    for (begin, _, first, last), words in zip(bounds, doc.segments):
        keep = slice(first - begin, last - begin)
        yield Segment(number, words, keep, doc.tokens[first:last])


def _as_rows(tokens: np.ndarray, like: Any) -> Rows:
    """Convert token indices to a slice if there is no whitespace in between, because
    indexing with a slice is faster."""
    first, last = int(tokens[0]), int(tokens[-1]) + 1
    if last - first == len(tokens):
        return slice(first, last)
    return as_index(tokens, like)
