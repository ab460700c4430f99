"""Let several processes train one model together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..bilm.training.softmax_backward import Gradient, RowGradient, merge_rows

# The first process may tokenize for days while the others wait.
TIMEOUT = timedelta(days=30)


def choose_gpu(gpu_id: int, environment: Mapping[str, str]) -> int:
    """Choose the GPU of this process. Under torchrun, each process of a machine uses
    a different GPU.

    gpu_id (int): The GPU that the user chose; less than 0 for the CPU.
    environment (Mapping[str, str]): The environment variables of this process.
    RETURNS (int): The GPU; less than 0 for the CPU.
    """
    if gpu_id >= 0 and int(environment.get("WORLD_SIZE", "1")) > 1:
        return int(environment.get("LOCAL_RANK", gpu_id))
    return gpu_id


class Ranks:
    """The processes that torchrun has started, or a single process.

    size (int): The number of processes.
    rank (int): The number of this process, from 0 on.
    device (torch.device): The device that this process trains on.
    """

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = device
        if self.size > 1 and not dist.is_initialized():
            self._connect()

    def _connect(self) -> None:
        """Connect to the other processes."""
        # The store of torchrun still holds the addresses of dead processes when it
        # restarts them. Each attempt uses other keys, so that they are not found.
        store, rank, size = next(iter(dist.rendezvous("env://")))
        store = dist.PrefixStore(f"attempt_{self.attempt}", store)
        store.set_timeout(TIMEOUT)  # NCCL connects later, through this store
        backend = "gloo"
        if self.device.type == "cuda":
            backend = "nccl"
            torch.cuda.set_device(self.device)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT
        )

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Run an exchange between processes. If another process does not answer, raise
        ValueError with one sentence."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # gloo raises nothing more specific
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"process {self.rank} lost the connection to another one, which may "
                f"have died ({reason}); --resume continues from the last checkpoint"
            ) from error

    @property
    def first(self) -> bool:
        """Return whether this is the first process, which writes the files."""
        return self.rank == 0

    @property
    def attempt(self) -> int:
        """Return how often torchrun has restarted this run after a process died."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    def share(self, weights: list[Tensor]) -> None:
        """Copy the weights of the first process to all other processes."""
        if self.size > 1:
            with self._exchange():
                for weight in weights:
                    dist.broadcast(weight.data, 0)

    def of_first(self, number: float) -> float:
        """Return, in all processes, the number that the first process passes."""
        if self.size == 1:
            return number
        shared = torch.tensor([number], dtype=torch.float64, device=self.device)
        with self._exchange():
            dist.broadcast(shared, 0)
        return float(shared)

    def mean(self, gradients: dict[str, Gradient]) -> dict[str, Gradient]:
        """Return the mean of the gradients of all processes."""
        if self.size == 1:
            return gradients
        return {name: self._mean(gradient) for name, gradient in gradients.items()}

    def _mean(self, gradient: Gradient) -> Gradient:
        if isinstance(gradient, Tensor):
            with self._exchange():
                dist.all_reduce(gradient)
            return gradient.div_(self.size)
        # Row numbers are on the host, but NCCL needs tensors on a GPU.
        device = gradient.values.device
        n_rows = torch.tensor([len(gradient.rows)], device=device)
        sizes = self._gather(n_rows)
        longest = int(max(sizes))
        rows = self._gather(_pad(gradient.rows.to(device), longest))
        values = self._gather(_pad(gradient.values, longest))
        parts = [
            RowGradient(r[: int(n)].cpu(), v[: int(n)] / self.size)
            for r, v, n in zip(rows, values, sizes)
        ]
        return merge_rows(parts)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._exchange():
            dist.all_gather(parts, tensor)
        return parts

    def total(self, tensor: Tensor) -> Tensor:
        """Return the sum of the tensors of all processes."""
        if self.size == 1:
            return tensor
        total = tensor.to(self.device, copy=True)  # NCCL needs tensors on a GPU
        with self._exchange():
            dist.all_reduce(total)
        return total.to(tensor.device)

    def total_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sum of the numbers of all processes."""
        return self.total(torch.from_numpy(numbers)).numpy()

    def collect(self, tensor: Tensor, axis: int) -> Tensor:
        """Concatenate the tensors of all processes along an axis."""
        if self.size == 1:
            return tensor
        mine = tensor.to(self.device).contiguous()
        return torch.cat(self._gather(mine), axis).to(tensor.device)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return bool(self.total(torch.tensor(float(flag))) > 0)

    def close(self) -> None:
        """Disconnect, when all processes have finished."""
        if self.size > 1:
            self.wait()
            dist.destroy_process_group()

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.size > 1:
            with self._exchange():
                dist.barrier()


def _pad(tensor: Tensor, n_rows: int) -> Tensor:
    """Append rows of zeros until there are n_rows."""
    missing = n_rows - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
