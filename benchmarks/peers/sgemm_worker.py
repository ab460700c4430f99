"""Worker: measures how fast this machine multiplies matrices, as a limit for all
systems."""

import torch
from protocol import serve

_operands: list[torch.Tensor] = []


def load(size: int) -> dict[str, int | str]:
    """Make two square float32 matrices and multiply them once.

    RETURNS (dict): The version and the thread count of torch.
    """
    _operands[:] = [torch.randn(size, size), torch.randn(size, size)]
    multiply(1)
    return {"torch": torch.__version__, "threads": torch.get_num_threads()}


def multiply(times: int) -> None:
    """Multiply the two matrices, which takes 2 * size**3 operations each time."""
    for _ in range(times):
        torch.mm(*_operands)


if __name__ == "__main__":
    serve({"load": load, "multiply": multiply})
