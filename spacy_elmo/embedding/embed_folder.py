"""Write the vectors of a text to a folder of Parquet files, on a cluster."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..bilm import BiLMBase
from ..parts.part_folder import check_part_folder
from ..parts.part_runs import Cluster, make_parts
from ..parts.part_tasks import Load
from ..required import require
from .embed_file import PART
from .embed_part import embed_part, identify_rows
from .part_files import Part
from .vector_table import make_table


class VectorMaker:
    """Makes Parquet files of vectors, with the rows that `embed_file` would write."""

    suffix = ".parquet"

    def __init__(self, bilm: BiLMBase) -> None:
        self.bilm = bilm
        self.fingerprint = identify_rows(bilm)

    def write(self, first: int, items: list[list[str]], path: Path) -> int:
        """Write all layers of sentences; see PartMaker."""
        from pyarrow import parquet

        table = make_table(Part(first, items, embed_part(self.bilm, items)))
        parquet.write_table(table, path)
        return int(table.num_rows)


def check_folder_target(path: Path) -> None:
    """Raise ValueError if ray is not installed, or if the path cannot be a folder for
    parts. Call this first, because embedding may take hours."""
    require("ray.data", "cluster")
    check_part_folder(path)


def embed_folder(
    bilm: BiLMBase,
    load: Load,
    path: Path,
    cluster: Cluster,
    *,
    problems: Counter[str],
    size: int = PART,
    on_progress: Callable[[int], None] = lambda n: None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write all layers of all sentences to Parquet files in a folder. Their rows, one
    file after another, are those that `embed_file` writes, bit for bit. If an earlier
    run with the same biLM and sentences was interrupted, its parts are used.

    load (Load): Loads the words of each sentence.
    size (int): The number of sentences in a part. With another number than
        `embed_file` uses, the last bits may differ from its, because batches do.
    RETURNS (dict[str, Any]): The manifest; see `make_parts`.
    """
    check_folder_target(path)
    return make_parts(
        VectorMaker(bilm),
        load,
        path,
        size,
        cluster=cluster,
        problems=problems,
        on_progress=on_progress,
        say=say,
    )
