"""Load the texts of Parquet files."""

import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from ..required import require
from .parquet_pages import measure_column
from .problems import Problems
from .text_files import open_file

COLUMN = "text"
DELTAS = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
ROWS = 1000  # that are read at a time
# Texts are usually less than 10 times as large as their compressed file. Identical
# texts compress better, so SMALL bytes are allowed at any ratio.
MAX_RATIO, SMALL = 100, 2**26


def load_parquet_texts(path: Path, problems: Problems) -> Iterator[str]:
    """Load the column "text" of a Parquet file.

    path (Path): The file. If it is no Parquet or lacks the column, a ValueError names
        it.
    problems (Problems): Counts the rows without a text.
    """
    require("pyarrow", "parquet")
    import pyarrow as pa
    from pyarrow import parquet

    with open_file(path) as file:
        try:
            table = parquet.ParquetFile(file)
            names = [column.path for column in table.schema]
            if COLUMN in names:
                _check_size(file, table.metadata, names.index(COLUMN), path)
                rows = ROWS
                if _is_delta_encoded(table.metadata, names.index(COLUMN)):
                    rows = 1  # a few bytes can repeat the text before
                else:
                    # A long text that many rows repeat is then in memory only once.
                    table = parquet.ParquetFile(
                        file, metadata=table.metadata, read_dictionary=[COLUMN]
                    )
                for batch in table.iter_batches(rows, columns=[COLUMN]):
                    for value in batch.column(0):
                        text = value.as_py()
                        if isinstance(text, str):
                            yield text
                        else:
                            problems['rows without a "text"'] += 1
        except (pa.ArrowException, OSError, EOFError, ValueError, zlib.error) as error:
            reason = str(error).strip().split("\n")[0]
            raise ValueError(f"{path}: cannot be read as Parquet ({reason})") from None
    if COLUMN not in names:
        raise ValueError(
            f"{path}: found the columns {', '.join(names)}; expected a column "
            f"'{COLUMN}'"
        )


def _is_delta_encoded(metadata: Any, column: int) -> bool:
    """Return whether the texts are encoded in a way that pyarrow cannot read as a
    dictionary."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    return any(DELTAS & {*group.column(column).encodings} for group in groups)


def _check_size(file: BufferedIOBase, metadata: Any, column: int, path: Path) -> None:
    """Raise ValueError if the texts are too large for the size of their file."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    found = sum(measure_column(file, group.column(column)) for group in groups)
    size, limit = path.stat().st_size, max(SMALL, MAX_RATIO * path.stat().st_size)
    if found > limit:
        raise ValueError(
            f"found texts of {found:,} bytes in {size:,}; expected at most {limit:,}"
        )
