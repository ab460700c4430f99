"""Several processes that train one model, or the only one."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ..bilm.training.softmax_backward import Gradient, RowGradient, merge_rows

# The first process may need days for the text while the others wait.
TIMEOUT = timedelta(days=30)


def choose_gpu(gpu_id: int, environment: Mapping[str, str]) -> int:
    """Under torchrun, each process of a machine takes a GPU of its own.

    gpu_id (int): What the user asked for; less than 0 for the CPU.
    environment (Mapping[str, str]): Of this process.
    RETURNS (int): The GPU to use, or less than 0.
    """
    if gpu_id >= 0 and int(environment.get("WORLD_SIZE", "1")) > 1:
        return int(environment.get("LOCAL_RANK", gpu_id))
    return gpu_id


class Ranks:
    """The processes that `torchrun` started: how many, and which of them this is."""

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = device
        if self.size > 1 and not dist.is_initialized():
            self._meet()

    def _meet(self) -> None:
        # torchrun's store outlives the processes it restarts. Each attempt has keys of
        # its own in it, or processes wait for the addresses of dead ones.
        store, rank, size = next(iter(dist.rendezvous("env://")))
        store = dist.PrefixStore(f"attempt_{self.attempt}", store)
        store.set_timeout(TIMEOUT)  # NCCL's processes meet here at their first exchange
        backend = "gloo"
        if self.device.type == "cuda":
            backend = "nccl"
            torch.cuda.set_device(self.device)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT
        )

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """One sentence where another process does not answer."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # gloo has no kind of its own
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"process {self.rank} lost touch with another one, which may have died "
                f"({reason}); --resume goes on from the last checkpoint"
            ) from error

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def attempt(self) -> int:
        """How often torchrun started this run again after a process had died."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    def share(self, weights: list[Tensor]) -> None:
        """Give all processes the weights of the first."""
        if self.size > 1:
            with self._exchange():
                for weight in weights:
                    dist.broadcast(weight.data, 0)

    def of_first(self, number: float) -> float:
        """RETURNS (float): The number that the first process has."""
        if self.size == 1:
            return number
        shared = torch.tensor([number], dtype=torch.float64, device=self.device)
        with self._exchange():
            dist.broadcast(shared, 0)
        return float(shared)

    def mean(self, gradients: dict[str, Gradient]) -> dict[str, Gradient]:
        """RETURNS (dict[str, Gradient]): The mean of the processes' gradients."""
        if self.size == 1:
            return gradients
        return {name: self._mean(gradient) for name, gradient in gradients.items()}

    def _mean(self, gradient: Gradient) -> Gradient:
        if isinstance(gradient, Tensor):
            with self._exchange():
                dist.all_reduce(gradient)
            return gradient.div_(self.size)
        n_rows = torch.tensor([len(gradient.rows)], device=gradient.rows.device)
        sizes = self._gather(n_rows)
        longest = int(max(sizes))
        rows = self._gather(_padded(gradient.rows, longest))
        values = self._gather(_padded(gradient.values, longest))
        parts = [
            RowGradient(r[: int(n)], v[: int(n)] / self.size)
            for r, v, n in zip(rows, values, sizes)
        ]
        return merge_rows(parts)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._exchange():
            dist.all_gather(parts, tensor)
        return parts

    def total(self, tensor: Tensor) -> Tensor:
        """RETURNS (Tensor): The sum over all processes."""
        if self.size == 1:
            return tensor
        total = tensor.to(self.device, copy=True)  # NCCL knows only GPUs
        with self._exchange():
            dist.all_reduce(total)
        return total.to(tensor.device)

    def collect(self, tensor: Tensor, axis: int) -> Tensor:
        """RETURNS (Tensor): The tensors of all processes beside each other."""
        if self.size == 1:
            return tensor
        mine = tensor.to(self.device).contiguous()
        return torch.cat(self._gather(mine), axis).to(tensor.device)

    def any(self, flag: bool) -> bool:
        """RETURNS (bool): Whether it is so in any process."""
        return bool(self.total(torch.tensor(float(flag))) > 0)

    def close(self) -> None:
        """At the end, when nobody needs the others any more."""
        if self.size > 1:
            self.wait()
            dist.destroy_process_group()

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.size > 1:
            with self._exchange():
                dist.barrier()


def _padded(tensor: Tensor, n_rows: int) -> Tensor:
    missing = n_rows - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
