"""How the sentences of a call are laid out for the LSTMs."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor


class Packing:
    """A batch of sentences laid out step by step, the longest first, so that at each
    step the sentences still running are the first rows and nothing is padded.

    rows (list[int]): Which sentences of the call these are, longest first.
    starts (np.ndarray): Where each one's tokens begin when they stand one sentence
        after another, in this order.
    active (list[int]): How many sentences are running at each step.
    order (list[Tensor]): For the forward and the backward direction, which token stands
        at each place of the layout, (n_tokens,).
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
        self.order = [torch.from_numpy(forward), torch.from_numpy(backward)]

    def index(self, sentences: Sequence[np.ndarray]) -> Tensor:
        """RETURNS (Tensor): The numbers of all tokens, sentence after sentence."""
        return torch.from_numpy(np.concatenate([sentences[row] for row in self.rows]))


def plan(lengths: Sequence[int], max_tokens: int) -> Iterator[Packing]:
    """Group sentences of like length into batches of at most max_tokens tokens, or of
    one sentence. Sentences without tokens are left out."""
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
