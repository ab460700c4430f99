"""Fork processes that train one model together."""

import os
import socket
from functools import partial

from helpers.forks import fork, wait
from helpers.pretraining import run_training


def fork_several(work, n=2):
    """Call work(rank) in n processes, with the variables that torchrun would set."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free.getsockname()[1]}

    def work_as(rank):
        variables = {**address, "WORLD_SIZE": n, "RANK": rank, "LOCAL_RANK": rank}
        os.environ.update({name: str(value) for name, value in variables.items()})
        work(rank)

    children = [fork(partial(work_as, rank)) for rank in range(n)]
    assert [wait(child, seconds=120) for child in children] == [0] * n


def train_in_several(n, config_path, output, **settings):
    """Run a training in n processes, and return what all of them have printed."""

    def work(rank):
        return run_training(config_path, output, **settings)

    return "\n".join(say_in_several(n, work, output.parent))


def say_in_several(n, work, folder):
    """Call work(rank) in n processes. Return what each of them returns, or the sentence
    of its ValueError.

    folder (Path): A folder for temporary files.
    """
    paths = [folder / f"said-{rank}.txt" for rank in range(n)]

    def work_and_write(rank):
        try:
            said = work(rank)
        except ValueError as error:
            said = str(error)
        paths[rank].write_text(said, "utf8")

    fork_several(work_and_write, n)
    return [path.read_text("utf8") for path in paths]
