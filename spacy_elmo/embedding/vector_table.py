"""Arrange vectors as a table with a row for each token."""

from typing import Any

import numpy as np

from .part_files import Part

COLUMNS = ["sentence", "token", "word"]  # and a column for each layer


def make_table(part: Part) -> Any:
    """Make a Parquet table with a row for each token of a part."""
    import pyarrow as pa

    first, sentences, layers = part
    lengths = [len(words) for words in sentences]
    n_layers, _, width = layers[0].shape
    values: list[Any] = [
        np.repeat(np.arange(first, first + len(sentences)), lengths),
        np.concatenate([np.arange(n) for n in lengths]),
        [word for words in sentences for word in words],
    ]
    columns = dict(zip(COLUMNS, values))
    for j in range(n_layers):
        flat = np.concatenate([array[j] for array in layers]).reshape(-1)
        columns[f"layer_{j}"] = pa.FixedSizeListArray.from_arrays(pa.array(flat), width)
    return pa.table(columns)
