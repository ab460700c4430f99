"""Several processes that train one model, or the only one."""

import os
from typing import Any, Dict, List

import torch
import torch.distributed as dist
from torch import Tensor

from ..bilm.softmax_gradients import Gradient, RowGradient, merge_rows


class Ranks:
    """The processes that `torchrun` started: how many, and which of them this is."""

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.size > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, weights: List[Tensor]) -> None:
        """Give all processes the weights of the first."""
        if self.size > 1:
            for weight in weights:
                dist.broadcast(weight.data, 0)

    def mean(self, gradients: Dict[str, Gradient]) -> Dict[str, Gradient]:
        """RETURNS (Dict[str, Gradient]): The mean of the processes' gradients."""
        if self.size == 1:
            return gradients
        return {name: self._mean(gradient) for name, gradient in gradients.items()}

    def _mean(self, gradient: Gradient) -> Gradient:
        if isinstance(gradient, Tensor):
            dist.all_reduce(gradient)
            return gradient.div_(self.size)
        n_rows = torch.tensor([len(gradient.rows)], device=gradient.rows.device)
        sizes = [torch.zeros_like(n_rows) for _ in range(self.size)]
        dist.all_gather(sizes, n_rows)
        longest = int(max(sizes))
        rows = self._gather(_padded(gradient.rows, longest))
        values = self._gather(_padded(gradient.values, longest))
        parts = [
            RowGradient(r[: int(n)], v[: int(n)] / self.size)
            for r, v, n in zip(rows, values, sizes)
        ]
        return merge_rows(parts)

    def _gather(self, tensor: Tensor) -> List[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor)
        return parts

    def total(self, tensor: Tensor) -> Tensor:
        """RETURNS (Tensor): The sum over all processes."""
        if self.size > 1:
            tensor = tensor.clone()
            dist.all_reduce(tensor)
        return tensor

    def collect(self, tensor: Tensor, axis: int) -> Tensor:
        """RETURNS (Tensor): The tensors of all processes beside each other."""
        if self.size == 1:
            return tensor
        return torch.cat(self._gather(tensor.contiguous()), axis)

    def agree(self, value: Any) -> Any:
        """RETURNS (Any): What the first process has."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, 0)
        return box[0]


def _padded(tensor: Tensor, n_rows: int) -> Tensor:
    missing = n_rows - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
