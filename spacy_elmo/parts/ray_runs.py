"""Make parts on a Ray cluster. Ray Data lets one task read the input, hands parts to
a pool of workers as they become free, and repeats what is lost with a worker or a node.
Repeating does no harm: a part depends on its items alone, and its file is complete
whenever it can be seen."""

import json
import logging
import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, DataContext, Datasource, ReadTask
from ray.data.block import BlockMetadata

from .part_tasks import Load, PartMaker, Record, Task, make_part, make_tasks

LOCAL = "local"


class TaskSource(Datasource):
    """Yields the tasks of all parts, one a block, then a notice of the problems of the
    input, or of the error that ended reading."""

    def __init__(
        self, fingerprint: str, suffix: str, load: Load, size: int, done: list[str]
    ) -> None:
        super().__init__()
        self.fingerprint, self.suffix = fingerprint, suffix
        self.load, self.size, self.done = load, size, done

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, *args: Any, **kwargs: Any) -> list[ReadTask]:
        """Return one task that reads the whole input, because the number of a sentence
        depends on all sentences before it."""
        unknown = BlockMetadata(
            num_rows=None, size_bytes=None, input_files=None, exec_stats=None
        )
        return [ReadTask(self._read, unknown)]

    def _read(self) -> Iterator[pa.Table]:
        problems: Counter[str] = Counter()
        try:
            items = self.load(problems)
            for task in make_tasks(
                self.fingerprint, self.suffix, items, self.size, self.done
            ):
                yield pa.table({"task": [json.dumps(task)]})
            notice: Any = {"problems": problems}
        except (ValueError, OSError) as error:
            notice = {"error": str(error)}
        yield pa.table({"task": [json.dumps(notice)]})


class Worker:
    """Makes the parts that one process of the cluster is given, with one model, which
    is loaded once."""

    def __init__(self, makers: list[Any], folder: str) -> None:
        self.maker = ray.get(makers[0])
        self.folder = Path(folder)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        tasks = [json.loads(text) for text in batch["task"]]
        return {"made": [json.dumps(self._make(task)) for task in tasks]}

    def _make(self, data: Any) -> Any:
        """Make a part.

        data (Any): A task, or a notice of the source.
        RETURNS (Any): The task without its items and the record, which is None if the
            part was there already; or a notice.
        """
        if isinstance(data, dict):
            return data
        task = Task(*data)
        if task.items is None:
            return [task, None]
        try:
            record = make_part(self.maker, self.folder, task)
        except (ValueError, OSError) as error:
            return {"error": str(error)}
        return [task._replace(items=None), record]


def make_on_cluster(
    maker: PartMaker,
    load: Load,
    path: Path,
    size: int,
    done: list[str],
    problems: Counter[str],
    address: str,
    workers: int | None,
) -> Generator[tuple[Task, Record | None]]:
    """Make parts with the workers of a cluster; see `make_parts`.

    YIELDS (tuple[Task, Record | None]): Each part and, if it was made now, its record,
        in the order in which they are finished.
    """
    with _connected(address, workers), _one_part_a_block():
        n_workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        source = TaskSource(maker.fingerprint, maker.suffix, load, size, done)
        # The reader mostly waits, so it must not take a core from the workers.
        tasks = ray.data.read_datasource(source, override_num_blocks=1, num_cpus=0)
        made = tasks.map_batches(
            Worker,
            fn_constructor_args=([ray.put(maker)], str(path)),
            batch_size=1,
            compute=ActorPoolStrategy(size=n_workers),
            num_cpus=1,
        )
        for row in made.iter_rows():
            data = json.loads(row["made"])
            if isinstance(data, dict):
                # Errors travel as data, because Ray adds its own words to exceptions.
                if "error" in data:
                    raise ValueError(data["error"])
                problems.update(data["problems"])
            else:
                task, record = data
                yield Task(*task), None if record is None else Record(*record)


@contextmanager
def _connected(address: str, workers: int | None) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine. If this process is connected
    already, that connection is used."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # sends nothing to others
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == LOCAL:
        options |= {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"{address}: found no Ray cluster ({reason}); expected the address of one, "
            f"or '{LOCAL}' to start one on this machine"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _one_part_a_block() -> Iterator[None]:
    """Let Ray Data work quietly, and hand on each part as soon as it is read. By
    default it would collect many megabytes for one worker first."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    ours = {
        "target_max_block_size": 1,
        "enable_progress_bars": False,
        "print_on_execution_start": False,
    }
    before = {name: getattr(context, name) for name in ours}
    for name, value in ours.items():
        setattr(context, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(context, name, value)
