"""Add up the gradients of a step: of its windows and of all processes."""

from collections import Counter
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor

from ..bilm.training.softmax_backward import (
    Gradient,
    RowGradient,
    add_gradients,
    merge_rows,
)
from .ranks import Ranks, pad_rows

# Few large exchanges wait less for a slow network than many small ones. A bucket has at
# least so many bytes, unless no gradient is left. torch's own buckets are as large.
BUCKET = 25 * 2**20


class GradientExchange:
    """Takes the gradients of a step as they are computed. As soon as a group of them is
    complete, it is sent to the other processes, while the next ones are computed.

    ranks (Ranks): The processes that train together.
    n_windows (int): The windows of the step. Each gives the gradients of the same
        weights, in the same groups.
    factor (float): Multiplies the gradients.
    """

    def __init__(self, ranks: Ranks, n_windows: int, factor: float) -> None:
        self.ranks = ranks
        self.n_windows = n_windows
        self.factor = factor / ranks.size
        self.sums: dict[str, Gradient] = {}
        self.n_added: Counter[str] = Counter()
        self.buckets: list[_Bucket] = []
        self.rows: list[str] = []  # the gradients of some rows, which are sent last

    def add(self, gradients: dict[str, Gradient]) -> None:
        """Add a group of gradients of a window. In all processes, groups have the same
        names and come in the same order."""
        complete = []
        for name, gradient in gradients.items():
            known = self.sums.get(name)
            parts = [gradient] if known is None else [known, gradient]
            self.sums[name] = add_gradients(parts)
            self.n_added[name] += 1
            if self.n_added[name] == self.n_windows:
                complete.append(name)
        for name in complete:
            _scale(self.sums[name], self.factor)
        if self.ranks.size > 1:
            self._send(complete)

    def _send(self, names: list[str]) -> None:
        """Begin to exchange gradients."""
        dense: dict[str, Tensor] = {}
        for name in names:
            gradient = self.sums[name]
            if isinstance(gradient, RowGradient):
                self.rows.append(name)
            else:
                dense[name] = gradient
        for bucket in _fill_buckets(dense):
            with self.ranks.exchange():
                bucket.work = dist.all_reduce(bucket.flat, async_op=True)
            self.buckets.append(bucket)

    def finish(self) -> dict[str, Gradient]:
        """Wait for the exchange.

        RETURNS (dict[str, Gradient]): The sum over the windows and the mean over the
            processes, multiplied by the factor, by the names of the weights.
        """
        for name, gradient in self._exchange_rows():
            self.sums[name] = gradient
        for bucket in self.buckets:
            with self.ranks.exchange():
                bucket.work.wait()
            self.sums.update(bucket.split())
        return self.sums

    def _exchange_rows(self) -> Iterator[tuple[str, RowGradient]]:
        """Add up the gradients of some rows.

        YIELDS (tuple[str, RowGradient]): The name of a weight, and the sum of all
            processes.
        """
        mine = {name: self.sums[name] for name in self.rows}
        gradients = {n: g for n, g in mine.items() if isinstance(g, RowGradient)}
        if not gradients:
            return
        lengths = [len(gradient.rows) for gradient in gradients.values()]
        # One exchange tells how many rows the processes have, for all weights.
        sizes = torch.stack(
            self.ranks.gather(torch.tensor(lengths, device=self.ranks.device))
        ).tolist()
        for number, (name, (rows, values)) in enumerate(gradients.items()):
            counts = [size[number] for size in sizes]
            rows = rows.to(values.device)  # NCCL needs tensors on a GPU
            parts = [
                RowGradient(r[:n].cpu(), v[:n])
                for r, v, n in zip(
                    self.ranks.gather(pad_rows(rows, max(counts))),
                    self.ranks.gather(pad_rows(values, max(counts))),
                    counts,
                )
            ]
            yield name, merge_rows(parts)


class _Bucket:
    """Gradients that are sent as one tensor.

    gradients (dict[str, Tensor]): The gradients, by the names of the weights.
    """

    work: dist.Work

    def __init__(self, gradients: dict[str, Tensor]) -> None:
        self.shapes = {name: gradient.shape for name, gradient in gradients.items()}
        self.flat = torch.cat([gradient.flatten() for gradient in gradients.values()])

    def split(self) -> dict[str, Gradient]:
        """Return the gradients again, by the names of the weights."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = self.flat.split(sizes)
        return {
            name: part.view(shape)
            for (name, shape), part in zip(self.shapes.items(), parts)
        }


def _fill_buckets(gradients: dict[str, Tensor]) -> Iterator[_Bucket]:
    """Divide gradients into buckets."""
    chosen: dict[str, Tensor] = {}
    n_bytes = 0
    for name, gradient in gradients.items():
        chosen[name] = gradient
        n_bytes += gradient.nbytes
        if n_bytes >= BUCKET:
            yield _Bucket(chosen)
            chosen, n_bytes = {}, 0
    if chosen:
        yield _Bucket(chosen)


def _scale(gradient: Gradient, factor: float) -> None:
    if factor != 1:
        values = gradient if isinstance(gradient, Tensor) else gradient.values
        values.mul_(factor)
