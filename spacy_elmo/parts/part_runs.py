"""Make all parts of an output that are missing, in this process or on a cluster."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from .part_folder import open_part_folder
from .part_tasks import Load, PartMaker, Record, Task, make_part, make_tasks


class Cluster(NamedTuple):
    """Where parts are made.

    address (str): The address of a Ray cluster; "local" starts one on this machine.
    workers (int | None): The number of workers; None for one for each core.
    """

    address: str
    workers: int | None = None


def make_parts(
    maker: PartMaker,
    load: Load,
    path: Path,
    size: int,
    *,
    cluster: Cluster | None = None,
    problems: Counter[str],
    on_progress: Callable[[int], None] = lambda n: None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Make the parts that an earlier run with the same maker and input has not made,
    then write the manifest.

    path (Path): The folder. All workers of a cluster must see it.
    size (int): The number of items in a part.
    cluster (Cluster | None): Where to make them; None for this process.
    problems (Counter[str]): Counts the problems of the input.
    on_progress (Callable[[int], None]): Called with the number of items done.
    say (Callable[[str], None]): Called with a sentence about each damaged part.
    RETURNS (dict[str, Any]): The manifest.
    """
    with open_part_folder(path, say) as folder:
        path = path.absolute()
        done = list(folder.records)
        if cluster is None:
            made = _make_here(maker, load, path, size, done, problems)
        else:
            from .ray_runs import make_on_cluster

            made = make_on_cluster(maker, load, path, size, done, problems, *cluster)
        names = []
        n_done = 0
        with closing(made), folder.journal() as note:
            for task, record in made:
                if record is not None:
                    note(record)
                names.append(task.name)
                n_done += task.n_items
                on_progress(n_done)
        if not names:
            raise ValueError("found no text; expected some")
        return folder.finish(maker.fingerprint, names)


def _make_here(
    maker: PartMaker,
    load: Load,
    path: Path,
    size: int,
    done: list[str],
    problems: Counter[str],
) -> Generator[tuple[Task, Record | None]]:
    """Make parts one after another.

    YIELDS (tuple[Task, Record | None]): Each part and, if it was made now, its record.
    """
    items = load(problems)
    for task in make_tasks(maker.fingerprint, maker.suffix, items, size, done):
        yield task, None if task.items is None else make_part(maker, path, task)
