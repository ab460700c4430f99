"""Streams of text side by side, a window of them at a time."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from ..bilm import BiLM
from ..bilm.training.step import Window
from .corpus import Stream

GROUP = 128  # words of like length that go through the character CNN together
EVEN = 16  # words that the size of a group is a multiple of


class Numbers(NamedTuple):
    """A window as numbers of words, 0 at the boundaries: what each direction reads and
    what it is to predict, (2, n_steps, n_rows) each."""

    inputs: np.ndarray
    targets: np.ndarray


class Epochs:
    """Cuts a text into n_rows streams of equal length, in another order of its blocks
    in each epoch, and gives windows of n_steps of them. Where a window stands is known
    by its epoch and number alone.

    stream (Stream): The text.
    seed (int): Of the order.
    rows (slice | None): Only these streams, for one of several processes.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        n_rows: int,
        n_steps: int,
        seed: int,
        rows: slice | None = None,
    ) -> None:
        self.stream = stream
        self.n_steps = n_steps
        self.seed = seed
        self.row_length = len(stream.tokens) // n_rows
        self.rows = list(range(n_rows))[rows or slice(None)]
        self.n_windows = self.row_length // n_steps
        if not self.n_windows:
            raise ValueError(
                f"the text has {len(stream.tokens):,} words and boundaries; expected "
                f"batch_size * window = {n_rows * n_steps:,} or more: use more text or "
                "smaller settings"
            )
        self._block = lru_cache(maxsize=4 * len(self.rows))(self._read_block)
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)
        self._starts = np.zeros(0, dtype=np.int64)

    def window(self, epoch: int, number: int) -> Numbers:
        if epoch != self._epoch:
            self._begin(epoch)
        inputs = np.empty((2, self.n_steps + 1, len(self.rows)), dtype=np.int32)
        for column, row in enumerate(self.rows):
            at = row * self.row_length + number * self.n_steps
            inputs[:, :, column] = self._read(at, self.n_steps + 1)
        return Numbers(inputs[:, :-1], inputs[:, 1:])

    def _begin(self, epoch: int) -> None:
        blocks = self.stream.blocks
        lengths = np.diff(np.append(blocks, len(self.stream.tokens)))
        self._order = np.random.default_rng([self.seed, epoch]).permutation(len(blocks))
        ends = np.cumsum(lengths[self._order])
        self._starts = ends - lengths[self._order]
        self._epoch = epoch

    def _read(self, at: int, n: int) -> np.ndarray:
        """RETURNS (np.ndarray): Both directions from a place on, (2, n)."""
        out = np.zeros((2, n), dtype=np.int32)  # after the last sentence, a boundary
        found = 0
        place = int(np.searchsorted(self._starts, at, side="right")) - 1
        while found < n and place < len(self._order):
            block = self._block(int(self._order[place]))
            begin = at + found - int(self._starts[place])
            piece = block[:, begin : begin + n - found]
            out[:, found : found + piece.shape[1]] = piece
            found += piece.shape[1]
            place += 1
        return out

    def _read_block(self, number: int) -> np.ndarray:
        blocks = self.stream.blocks
        end = None if number + 1 == len(blocks) else blocks[number + 1]
        tokens = np.asarray(self.stream.tokens[blocks[number] : end])
        return np.stack([tokens, turn_sentences(tokens)])


def turn_sentences(tokens: np.ndarray) -> np.ndarray:
    """RETURNS (np.ndarray): The same sentences, with 0 before each, from end to
    begin."""
    boundary = tokens == 0
    starts = np.flatnonzero(boundary)
    ends = np.append(starts[1:], len(tokens))
    sentence = np.cumsum(boundary) - 1
    places = np.arange(len(tokens))
    mirror = starts[sentence] + ends[sentence] - places
    return tokens[np.where(boundary, places, mirror)]


class Feeder:
    """Makes tensors of windows.

    words (Sequence[str]): The words of the corpus, in the order of their numbers.
    outputs (np.ndarray): The softmax's number of each word, counted from 1; place 0 is
        not used.
    boundaries (tuple[int, int]): The softmax's numbers of the end of a sentence, which
        the forward direction predicts, and of its begin.
    forget (bool): Whether each sentence starts from zero states.
    even (bool): Whether the last group of words is filled up with words that nothing
        reads, to one of a few sizes. On a CPU, products are made by programs that are
        compiled and kept for each number of rows.
    """

    def __init__(
        self,
        bilm: BiLM,
        words: Sequence[str],
        outputs: np.ndarray,
        boundaries: tuple[int, int],
        *,
        forget: bool,
        even: bool = False,
    ) -> None:
        self.bilm = bilm
        self.words = words
        self.outputs = outputs
        self.boundaries = boundaries
        self.forget = forget
        self.even = even

    def feed(self, numbers: Numbers) -> Window:
        device = self.bilm.device
        ids, rows = self._encode(numbers.inputs)
        targets = self.outputs[numbers.targets].astype(np.int64)
        for d, boundary in enumerate(self.boundaries):
            targets[d][numbers.targets[d] == 0] = boundary
        keep = None
        if self.forget:
            starts = (numbers.inputs[0] != 0).astype(np.float32)[:, :, None]
            keep = torch.from_numpy(starts).to(device)
        return Window(
            ids,
            torch.from_numpy(rows).to(device),
            torch.from_numpy(targets).to(device),
            keep,
        )

    def _encode(self, inputs: np.ndarray) -> tuple[list[torch.Tensor], np.ndarray]:
        """RETURNS: The ids of distinct words in groups of like length, and which of
        them stands at each place."""
        encoder = self.bilm.encoder
        distinct, places = np.unique(inputs, return_inverse=True)
        places = places.reshape(inputs.shape)
        numbers = distinct[1:] if distinct[0] == 0 else distinct
        keys = encoder.keys([self.words[number - 1] for number in numbers])
        order = np.argsort([encoder.cost(key) for key in keys], kind="stable")
        groups = [order[at : at + GROUP] for at in range(0, len(order), GROUP)]
        if self.even:
            missing = -len(groups[-1]) % EVEN
            groups[-1] = np.pad(groups[-1], (0, missing), mode="edge")
        ids = [encoder.encode([keys[k] for k in group]) for group in groups]
        row_of_key = np.argsort(order)
        # The keys are the begin of a sentence, the words, and the end.
        key_of_place = np.arange(len(distinct)) + int(distinct[0] != 0)
        rows = row_of_key[key_of_place][places]
        rows[1][inputs[1] == 0] = row_of_key[-1]
        return ids, rows
