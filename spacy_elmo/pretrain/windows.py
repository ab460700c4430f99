"""Divide a text into rows and windows, and encode windows.

The text is divided into rows of equal length, which are read side by side as a batch.
A window is the next few tokens of every row.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..bilm import BiLMBase
from ..bilm.word_ids import Key
from .corpus import Stream

if TYPE_CHECKING:
    from ..bilm.training.step import Window

GROUP = 128  # words of similar length that the character CNN encodes together
MULTIPLE = 16  # the last group is padded to a multiple of this many words


class WordNumbers(NamedTuple):
    """A window as numbers of words, with 0 for sentence boundaries.

    inputs (np.ndarray): The words that each direction reads, (2, n_steps, n_rows).
    targets (np.ndarray): The words that each direction should predict, (2, n_steps,
        n_rows).
    """

    inputs: np.ndarray
    targets: np.ndarray


class Epochs:
    """Divides a text into rows of equal length, and the rows into windows. In each
    epoch, the blocks of the text are shuffled. A window depends only on the seed, its
    epoch and its number, so training can be resumed anywhere.

    stream (Stream): The text.
    n_rows (int): The number of rows.
    n_steps (int): The number of tokens of each row in a window.
    seed (int): The seed of the shuffling.
    rows (slice | None): The rows of this process; None for all.
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
        self.rows = range(n_rows)[rows or slice(None)]
        self.n_windows = self.row_length // n_steps
        if not self.n_windows:
            raise ValueError(
                f"the text has {len(stream.tokens):,} words and sentence boundaries; "
                f"expected batch_size * window = {n_rows * n_steps:,} or more: use "
                "more text or smaller values"
            )
        self._block = lru_cache(maxsize=4 * len(self.rows))(self._read_block)
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)
        self._starts = np.zeros(0, dtype=np.int64)

    def window(self, epoch: int, number: int) -> WordNumbers:
        """Return a window by its epoch and its number in this epoch."""
        if epoch != self._epoch:
            self._shuffle(epoch)
        inputs = np.empty((2, self.n_steps + 1, len(self.rows)), dtype=np.int32)
        for column, row in enumerate(self.rows):
            at = row * self.row_length + number * self.n_steps
            inputs[:, :, column] = self._read(at, self.n_steps + 1)
        return WordNumbers(inputs[:, :-1], inputs[:, 1:])

    def _shuffle(self, epoch: int) -> None:
        """Choose the order of the blocks in an epoch."""
        blocks = self.stream.blocks
        lengths = np.diff(np.append(blocks, len(self.stream.tokens)))
        self._order = np.random.default_rng([self.seed, epoch]).permutation(len(blocks))
        ends = np.cumsum(lengths[self._order])
        self._starts = ends - lengths[self._order]
        self._epoch = epoch

    def _read(self, at: int, n: int) -> np.ndarray:
        """Return n tokens of the shuffled text for both directions, (2, n).

        at (int): The index of the first token.
        """
        out = np.zeros((2, n), dtype=np.int32)  # zeros: a boundary follows the text
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
        return np.stack([tokens, reverse_sentences(tokens)])


def reverse_sentences(tokens: np.ndarray) -> np.ndarray:
    """Reverse the words of each sentence, as the backward direction reads them.

    tokens (np.ndarray): Numbers of words with 0 before each sentence, (n_tokens,).
    RETURNS (np.ndarray): The reversed sentences, also with 0 before each, (n_tokens,).
    """
    boundary = tokens == 0
    starts = np.flatnonzero(boundary)
    ends = np.append(starts[1:], len(tokens))
    sentence = np.cumsum(boundary) - 1
    places = np.arange(len(tokens))
    mirror = starts[sentence] + ends[sentence] - places
    return tokens[np.where(boundary, places, mirror)]


class WindowEncoder:
    """Encodes windows for a biLM.

    bilm (BiLMBase): The biLM, for its encoder and device.
    words (Sequence[str]): The words of the corpus. Word number n is words[n - 1].
    outputs (np.ndarray): The number in the softmax of each word number, (n_words + 1,).
        Index 0 is not used.
    boundaries (tuple[int, int]): The number in the softmax of the end of a sentence,
        which the forward direction predicts, and of the beginning, which the backward
        direction predicts.
    forget (bool): Whether each sentence starts from zero states.
    even (bool): Whether to pad the last group of words to a multiple of MULTIPLE. On a
        CPU, this saves time: a kernel is compiled for each size that occurs.
    """

    def __init__(
        self,
        bilm: BiLMBase,
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

    def encode(self, numbers: WordNumbers) -> "Window":
        """Encode a window as tensors for a torch biLM."""
        import torch

        from ..bilm.devices import to_device
        from ..bilm.training.step import Window

        device = self.bilm.new_zeros(0).device
        ids, rows = self._encode_words(numbers.inputs)
        keep = None
        if self.forget:
            starts = (numbers.inputs[0] != 0).astype(np.float32)[:, :, None]
            keep = to_device(starts, device)
        return Window(
            [torch.from_numpy(group) for group in ids],
            to_device(rows, device),
            torch.from_numpy(self.find_targets(numbers)),
            keep,
        )

    def find_targets(self, numbers: WordNumbers) -> np.ndarray:
        """Find the number in the softmax of each target, (2, n_steps, n_rows)."""
        targets = self.outputs[numbers.targets].astype(np.int64)
        for d, boundary in enumerate(self.boundaries):
            targets[d][numbers.targets[d] == 0] = boundary
        return targets

    def find_keys(self, inputs: np.ndarray, direction: int) -> list[Key]:
        """Find the keys of words that a direction reads.

        inputs (np.ndarray): Numbers of words, (n,).
        """
        boundary = self.bilm.word_ids.keys([])[-1 if direction else 0]
        words = [self.words[number - 1] for number in inputs[inputs != 0].tolist()]
        keys = iter(self.bilm.word_ids.keys(words)[1:-1])
        return [next(keys) if number else boundary for number in inputs.tolist()]

    def _encode_words(self, inputs: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Encode the distinct words of a window.

        inputs (np.ndarray): Numbers of words, (2, n_steps, n_rows).
        RETURNS (tuple[list[np.ndarray], np.ndarray]): The ids of the distinct words, in
            groups of similar length; and for each input, the row of its word in the
            joined groups, (2, n_steps, n_rows).
        """
        word_ids = self.bilm.word_ids
        distinct, places = np.unique(inputs, return_inverse=True)
        places = places.reshape(inputs.shape)
        numbers = distinct[1:] if distinct[0] == 0 else distinct
        keys = word_ids.keys([self.words[number - 1] for number in numbers])
        order = np.argsort([word_ids.cost(key) for key in keys], kind="stable")
        groups = [order[at : at + GROUP] for at in range(0, len(order), GROUP)]
        if self.even:
            missing = -len(groups[-1]) % MULTIPLE
            groups[-1] = np.pad(groups[-1], (0, missing), mode="edge")
        ids = [word_ids.encode([keys[k] for k in group]) for group in groups]
        row_of_key = np.argsort(order)
        # The first key is the beginning of a sentence, and the last key is its end.
        key_of_place = np.arange(len(distinct)) + int(distinct[0] != 0)
        rows = row_of_key[key_of_place][places]
        rows[1][inputs[1] == 0] = row_of_key[-1]
        return ids, rows
