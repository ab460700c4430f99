"""Let several processes train one model together."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from .processes import Processes

# A step takes seconds. A host that does not answer for so long is lost.
STEP_TIMEOUT = timedelta(minutes=30)
# Processes may tokenize for days while the others wait.
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


class Ranks(Processes):
    """The processes that torchrun has started, or a single process.

    device (torch.device): The device that this process trains on.
    """

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = device
        # The processes as a group that waits for days and exchanges tensors of the CPU.
        self.patient: dist.ProcessGroup | None = None
        if self.size > 1 and not dist.is_initialized():
            self._connect()

    def _connect(self) -> None:
        """Connect to the other processes."""
        store, rank, size = next(iter(dist.rendezvous("env://")))
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            # The store of torchrun still holds the addresses of dead processes when it
            # restarts them. Each attempt uses other keys, so that they are not found.
            # Other stores are new in each attempt, and hosts count attempts differently
            # if one of them was started again.
            store = dist.PrefixStore(f"attempt_{self.attempt}", store)
        store.set_timeout(TIMEOUT)  # NCCL connects later, through this store
        backend = "gloo"
        if self.device.type == "cuda":
            backend = "nccl"
            torch.cuda.set_device(self.device)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=STEP_TIMEOUT
        )
        self.patient = dist.new_group(backend="gloo", timeout=TIMEOUT)

    @contextmanager
    def exchange(self) -> Iterator[None]:
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
    def attempt(self) -> int:
        """Return how often torchrun has restarted this run after a process died."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    def share(self, weights: list[Tensor]) -> None:
        """Copy the weights of the first process to all other processes."""
        if self.size > 1:
            with self.exchange():
                for weight in weights:
                    dist.broadcast(weight.data, 0)

    def of_first(self, number: float) -> float:
        """Return, in all processes, the number that the first process passes."""
        if self.size == 1:
            return number
        shared = torch.tensor([number], dtype=torch.float64, device=self.device)
        with self.exchange():
            dist.broadcast(shared, 0)
        return float(shared)

    def gather_texts(self, text: str) -> list[str]:
        if self.size == 1:
            return [text]
        data = torch.frombuffer(bytearray(text.encode() + b"\n"), dtype=torch.uint8)
        n_bytes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        with self.exchange():
            dist.all_gather(n_bytes, torch.tensor([len(data)]), group=self.patient)
            longest = int(max(n_bytes))
            parts = [data.new_zeros(longest) for _ in range(self.size)]
            dist.all_gather(parts, pad_rows(data, longest), group=self.patient)
        texts = [bytes(part[: int(n)].tolist()) for part, n in zip(parts, n_bytes)]
        return [text[:-1].decode() for text in texts]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, which have the same shape."""
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with self.exchange():
            dist.all_gather(parts, tensor)
        return parts

    def total(self, tensor: Tensor) -> Tensor:
        """Return the sum of the tensors of all processes."""
        if self.size == 1:
            return tensor
        total = tensor.to(self.device, copy=True)  # NCCL needs tensors on a GPU
        with self.exchange():
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
        return torch.cat(self.gather(mine), axis).to(tensor.device)

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
            with self.exchange():
                dist.barrier(self.patient)


def pad_rows(tensor: Tensor, n_rows: int) -> Tensor:
    """Append rows of zeros until there are n_rows."""
    missing = n_rows - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
