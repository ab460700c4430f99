"""Load the texts of Parquet files."""

from collections.abc import Iterator
from pathlib import Path

from ..required import require
from .problems import Problems
from .text_files import open_file

COLUMN = "text"
ROWS = 1000  # that are read at a time


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
            names = table.schema_arrow.names
            if COLUMN in names:
                for batch in table.iter_batches(ROWS, columns=[COLUMN]):
                    for text in batch.column(0).to_pylist():
                        if isinstance(text, str):
                            yield text
                        else:
                            problems['rows without a "text"'] += 1
        except (pa.ArrowException, OSError) as error:
            reason = str(error).strip().split("\n")[0]
            raise ValueError(f"{path}: cannot be read as Parquet ({reason})") from None
    if COLUMN not in names:
        raise ValueError(
            f"{path}: found the columns {', '.join(names)}; expected a column "
            f"'{COLUMN}'"
        )
