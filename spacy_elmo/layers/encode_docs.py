"""A biLM reads docs."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..bilm import BiLM
from ..bilm.devices import to_device
from ..bilm.engines.packing import plan
from ..bilm.state import State
from .segments import Reading
from .settings import Settings

# Sorting pays up to here; beyond it, only the memory would grow.
MAX_CALL_TOKENS = 2**16

Rows = slice | Tensor


class Piece(NamedTuple):
    """A segment of a doc: the doc's number, the words, which of their vectors count,
    and the numbers of those words' tokens, (n_kept,)."""

    doc: int
    words: list[str]
    keep: slice
    tokens: np.ndarray


def read_docs(
    bilm: BiLM,
    readings: Sequence[Reading],
    settings: Settings,
    take: Callable[[int, Rows, Tensor], None],
) -> None:
    """Compute the layers of docs without their gradients.

    take (Callable[[int, Rows, Tensor], None]): Called again and again with the number
        of a doc, some of its tokens, and their layers (n_rows, n_layers + 1, width), a
        view that should not be kept.
    """
    state = _first_state(bilm, readings, settings)
    for pieces in _calls(readings, settings):

        def finish(row: int, layers: Tensor, pieces: list[Piece] = pieces) -> None:
            piece = pieces[row]
            if len(piece.tokens):
                take(piece.doc, _rows(piece.tokens, layers), layers[piece.keep])

        docs = [piece.doc for piece in pieces]
        start = None if state is None else state.take(docs)
        _, end = bilm.run(
            [piece.words for piece in pieces],
            start,
            max_batch_tokens=settings.max_batch_tokens,
            finish=finish,
        )
        if state is not None and end is not None:
            state.put(docs, end)


def read_docs_with_gradient(
    bilm: BiLM, readings: Sequence[Reading], settings: Settings
) -> list[Tensor]:
    """The differentiable function. States carried from segment to segment carry no
    gradient.

    RETURNS (list[Tensor]): For each doc (n_tokens, n_layers + 1, width).
    """
    state = _first_state(bilm, readings, settings)
    n_layers, width = bilm.config.lstm.n_layers + 1, bilm.config.width
    # Row 0 is for whitespace, whose vectors are zero.
    parts = [torch.zeros(1, n_layers, width, device=bilm.device)]
    n_rows = 1
    index = [np.zeros(reading.n_tokens, dtype=np.int64) for reading in readings]
    for pieces in _calls(readings, settings):
        lengths = [len(piece.words) for piece in pieces]
        for packing in plan(lengths, settings.max_batch_tokens):
            chosen = [pieces[row] for row in packing.rows]
            docs = [piece.doc for piece in chosen]
            batch = bilm.prepare([piece.words for piece in chosen])
            output = bilm(batch, None if state is None else state.take(docs))
            if state is not None:
                state.put(docs, State(*(part.detach() for part in output.state)))
            layers = output.layers.permute(1, 2, 0, 3)  # (n_rows, n_steps, ...)
            n_steps = layers.shape[1]
            for number, piece in enumerate(chosen):
                steps = (
                    np.arange(len(piece.words))[piece.keep] + 1
                )  # after the boundary
                index[piece.doc][piece.tokens] = n_rows + number * n_steps + steps
            parts.append(layers.reshape(-1, n_layers, width))
            n_rows += len(parts[-1])
    rows = to_device(np.concatenate(index), bilm.device)
    found = torch.cat(parts).index_select(0, rows)
    return list(found.split([reading.n_tokens for reading in readings]))


def read_surprisal(bilm: BiLM, readings: Sequence[Reading]) -> list[np.ndarray]:
    """RETURNS (list[np.ndarray]): For each doc (n_tokens, 2): the bits of each word
    given the words before it and given those after it; 0 for whitespace."""
    pieces = [p for n, reading in enumerate(readings) for p in _pieces(n, reading)]
    out = [np.zeros((reading.n_tokens, 2), dtype=np.float32) for reading in readings]
    for piece, bits in zip(pieces, bilm.surprisal([piece.words for piece in pieces])):
        out[piece.doc][piece.tokens] = bits[piece.keep]
    return out


def _first_state(
    bilm: BiLM, readings: Sequence[Reading], settings: Settings
) -> State | None:
    if not settings.stateful:
        return None
    return State.zeros(bilm.config.lstm, len(readings), bilm.weight)


def _calls(readings: Sequence[Reading], settings: Settings) -> Iterator[list[Piece]]:
    """Group the segments of all docs into calls: as many as fit, but one of a doc at a
    time where each has to wait for the one before it."""
    queues = [_pieces(number, reading) for number, reading in enumerate(readings)]
    if not settings.stateful:
        yield from _filled(piece for queue in queues for piece in queue)
        return
    while queues:
        heads = [(next(queue, None), queue) for queue in queues]
        yield from _filled(piece for piece, _ in heads if piece is not None)
        queues = [queue for piece, queue in heads if piece is not None]


def _filled(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    call: list[Piece] = []
    n_tokens = 0
    for piece in pieces:
        call.append(piece)
        n_tokens += len(piece.words)
        if n_tokens >= MAX_CALL_TOKENS:
            yield call
            call, n_tokens = [], 0
    if call:
        yield call


def _pieces(number: int, reading: Reading) -> Iterator[Piece]:
    bounds = reading.bounds.tolist()
    for (begin, _, first, last), words in zip(bounds, reading.segments):
        keep = slice(first - begin, last - begin)
        yield Piece(number, words, keep, reading.tokens[first:last])


def _rows(tokens: np.ndarray, like: Tensor) -> Rows:
    """RETURNS (Rows): A slice if there is no whitespace in between."""
    first, last = int(tokens[0]), int(tokens[-1]) + 1
    if last - first == len(tokens):
        return slice(first, last)
    return to_device(tokens, like.device)
