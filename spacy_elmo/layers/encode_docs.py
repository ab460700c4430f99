"""Encode segmented docs with a biLM, with and without gradients."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..bilm import BiLM
from ..bilm.devices import to_device
from ..bilm.engines.packing import plan
from ..bilm.state import State
from .segments import SegmentedDoc
from .settings import EncodingSettings

# The biLM sorts the segments of a call by length, which reduces padding. Larger calls
# would need more memory and have hardly less padding.
MAX_CALL_TOKENS = 2**16

Rows = slice | Tensor
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
    bilm: BiLM,
    docs: Sequence[SegmentedDoc],
    settings: EncodingSettings,
    take: Callable[[int, Rows, Tensor], None],
) -> None:
    """Compute the layers of docs without gradients.

    take (Callable[[int, Rows, Tensor], None]): Called for each segment with the index
        of the doc, the indices of the tokens in it, and their layers,
        (n_rows, n_layers + 1, width). The layers are a view of a whole batch: copy what
        you want to keep.
    """

    def encode(segments: list[Segment], state: State | None) -> State | None:
        def finish(number: int, layers: Tensor) -> None:
            segment = segments[number]
            if len(segment.tokens):
                rows = _as_rows(segment.tokens, layers.device)
                take(segment.doc, rows, layers[segment.keep])

        _, state = bilm.run(
            [segment.words for segment in segments],
            state,
            max_batch_tokens=settings.max_batch_tokens,
            finish=finish,
        )
        return state

    _encode_calls(bilm, docs, settings, encode)


def encode_docs_with_gradients(
    bilm: BiLM, docs: Sequence[SegmentedDoc], settings: EncodingSettings
) -> list[Tensor]:
    """Compute the layers of docs as a differentiable function of the weights. Gradients
    do not flow through the LSTM states that a segment passes to the next one.

    RETURNS (list[Tensor]): (n_tokens, n_layers + 1, width) for each doc.
    """
    n_layers, width = bilm.config.lstm.n_layers + 1, bilm.config.width
    # Row 0 is for whitespace tokens, whose vectors are zero.
    parts = [torch.zeros(1, n_layers, width, device=bilm.device)]
    rows = [np.zeros(doc.n_tokens, dtype=np.int64) for doc in docs]

    def encode(segments: list[Segment], state: State | None) -> State | None:
        n_rows = sum(map(len, parts))
        lengths = [len(segment.words) for segment in segments]
        for packing in plan(lengths, settings.max_batch_tokens):
            chosen = [segments[number] for number in packing.rows]
            batch = bilm.prepare([segment.words for segment in chosen])
            output = bilm(batch, None if state is None else state.take(packing.rows))
            if state is not None:
                end = State(*(part.detach() for part in output.state))
                state.put(packing.rows, end)
            layers = output.layers.permute(1, 2, 0, 3)  # (n_segments, n_steps, ...)
            n_steps = layers.shape[1]
            for number, segment in enumerate(chosen):
                # Step 0 is the sentence boundary.
                steps = np.arange(len(segment.words))[segment.keep] + 1
                rows[segment.doc][segment.tokens] = n_rows + number * n_steps + steps
            parts.append(layers.reshape(-1, n_layers, width))
            n_rows += len(parts[-1])
        return state

    _encode_calls(bilm, docs, settings, encode)
    index = to_device(np.concatenate(rows), bilm.device)
    found = torch.cat(parts).index_select(0, index)
    return list(found.split([doc.n_tokens for doc in docs]))


def compute_surprisal(bilm: BiLM, docs: Sequence[SegmentedDoc]) -> list[np.ndarray]:
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


def _encode_calls(
    bilm: BiLM,
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
    states = State.zeros(bilm.config.lstm, len(docs), bilm.weight)
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


def _as_rows(tokens: np.ndarray, device: torch.device) -> Rows:
    """Convert token indices to a slice if there is no whitespace in between, because
    indexing with a slice is faster."""
    first, last = int(tokens[0]), int(tokens[-1]) + 1
    if last - first == len(tokens):
        return slice(first, last)
    return to_device(tokens, device)
