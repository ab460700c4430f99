"""Group the sentences of a call into batches without padding."""

from collections.abc import Iterator, Sequence

import numpy as np


class Packing:
    """The layout of a batch: first all tokens of step 0, then all of step 1, and so on.
    The longest sentence comes first, so that the sentences still active at a step are
    the first rows and nothing is padded.

    rows (list[int]): The numbers of the batch's sentences in the call, longest first.
    lengths (np.ndarray): Their lengths, (n_rows,).
    starts (np.ndarray): The position of the first token of each sentence if all tokens
        are counted sentence after sentence, (n_rows,).
    active (list[int]): The number of sentences still active at each step.
    order (list[np.ndarray]): One array (n_tokens,) for the forward and one for the
        backward direction. It has the token at each place of the layout; tokens are
        counted sentence after sentence.
    """

    def __init__(self, rows: Sequence[int], lengths: Sequence[int]) -> None:
        ranked = sorted(zip(rows, lengths), key=lambda pair: -pair[1])
        self.rows = [row for row, _ in ranked]
        self.lengths = np.array([length for _, length in ranked], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        steps = np.arange(self.lengths.max(initial=0))[:, None]  # (n_steps, 1)
        running = steps < self.lengths  # (n_steps, n_rows)
        self.active: list[int] = running.sum(1).tolist()
        forward = (self.starts + steps)[running]
        backward = (self.starts + self.lengths - 1 - steps)[running]
        self.order = [forward, backward]

    def index(self, sentences: Sequence[np.ndarray]) -> np.ndarray:
        """Concatenate the token numbers of the batch's sentences, longest first.

        sentences (Sequence[np.ndarray]): For each sentence of the call, a number for
            each token, such as its row in a table, (n_tokens of the sentence,).
        RETURNS (np.ndarray): (n_tokens,).
        """
        return np.concatenate([sentences[row] for row in self.rows])


def plan(lengths: Sequence[int], max_tokens: int) -> Iterator[Packing]:
    """Group sentences of similar length into batches, longest first.

    lengths (Sequence[int]): The lengths of all sentences. Empty ones are left out.
    max_tokens (int): The most tokens in a batch; a longer sentence makes a batch alone.
    YIELDS (Packing): The layout of each batch.
    """
    order = [row for row in np.argsort(lengths, kind="stable") if lengths[row]]
    rows: list[int] = []
    n_tokens = 0
    for row in reversed(order):
        if rows and n_tokens + lengths[row] > max_tokens:
            yield Packing(rows, [lengths[r] for r in rows])
            rows, n_tokens = [], 0
        rows.append(int(row))
        n_tokens += lengths[row]
    if rows:
        yield Packing(rows, [lengths[r] for r in rows])
