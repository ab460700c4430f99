"""Write the vectors of a text to a file, part by part, so that an interrupted run can
be continued."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..bilm import BiLM
from ..bilm.fingerprint import fingerprint
from ..files import write_atomically
from ..fingerprints import fingerprint_data

PART = 1000  # sentences
# The module that writes a format, and the extra of this package that installs it.
NEEDED = {"hdf5": ("h5py", "hdf5"), "parquet": ("pyarrow", "parquet")}
FORMATS = {".hdf5": "hdf5", ".h5": "hdf5", ".parquet": "parquet"}

Sentences = list[list[str]]


def embed_file(
    bilm: BiLM,
    sentences: Iterable[list[str]],
    path: Path,
    *,
    on_progress: Callable[[int], None] = lambda n: None,
) -> int:
    """Write all layers of all sentences to a file. If an earlier run with the same biLM
    and sentences was interrupted, the parts that it has written are used.

    sentences (Iterable[list[str]]): The words of each sentence.
    path (Path): A .hdf5, .h5 or .parquet file. HDF5 files have the layout of bilm-tf:
        for each sentence a data set, (n_layers + 1, n_tokens, width), whose name is the
        number of the sentence. Parquet files have a row for each token. Until the file
        is finished, its parts are in a folder beside it.
    on_progress (Callable[[int], None]): Called with the number of sentences done.
    RETURNS (int): The number of sentences.
    """
    check_target(path)
    write, merge = WRITERS[FORMATS[path.suffix]]
    folder = path.with_name(path.name + ".parts")
    folder.mkdir(parents=True, exist_ok=True)
    weights = f"{fingerprint(bilm)} {bilm.precision}"
    parts: list[Path] = []
    n_done = 0
    for number, part in enumerate(_divide(sentences)):
        # The name has a fingerprint of the biLM and the text, because the folder may
        # contain parts of a run with another biLM or text.
        key = fingerprint_data([weights, n_done, part])[:16]
        target = folder / f"{number:08}-{key}{path.suffix}"
        if not target.exists():
            for other in folder.glob(f"{number:08}-*"):
                other.unlink()
            layers = bilm.embed(part)
            write_atomically(target, _writer(write, part, layers, n_done))
        parts.append(target)
        n_done += len(part)
        on_progress(n_done)
    if parts:
        write_atomically(path, lambda target: merge(parts, target))
    shutil.rmtree(folder)
    if not parts:
        raise ValueError("found no sentences; expected some text")
    return n_done


def check_target(path: Path) -> None:
    """Raise ValueError if the path has an unknown suffix, is a folder, or needs a
    module that is not installed. Call this first, because embedding may take hours."""
    if path.suffix not in FORMATS:
        raise ValueError(
            f"{path}: found the suffix '{path.suffix}'; expected one of "
            + ", ".join(FORMATS)
        )
    if path.is_dir():
        raise ValueError(f"{path}: found a folder; expected the name of a file")
    _require(*NEEDED[FORMATS[path.suffix]])


def _divide(sentences: Iterable[list[str]]) -> Iterator[Sentences]:
    """Divide sentences into parts of at most PART sentences."""
    stream = iter(sentences)
    while True:
        part = list(islice(stream, PART))
        if not part:
            return
        yield part


def _writer(
    write: Callable[..., None], part: Sentences, layers: list[np.ndarray], first: int
) -> Callable[[Path], None]:
    """Return a function that writes a part to a path.

    layers (list[np.ndarray]): (n_layers + 1, n_tokens, width) for each sentence.
    first (int): The number of the part's first sentence in the whole text.
    """
    return lambda target: write(target, part, layers, first)


def _write_hdf5(
    path: Path, sentences: Sentences, layers: list[np.ndarray], first: int
) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for number, array in enumerate(layers, first):
            file.create_dataset(str(number), data=array)


def _merge_hdf5(parts: list[Path], path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for part in parts:
            with h5py.File(part, "r") as source:
                for name in source:
                    source.copy(name, file)


def _write_parquet(
    path: Path, sentences: Sentences, layers: list[np.ndarray], first: int
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    lengths = [len(words) for words in sentences]
    n_layers, _, width = layers[0].shape
    columns: Any = {
        "sentence": np.repeat(np.arange(first, first + len(sentences)), lengths),
        "token": np.concatenate([np.arange(n) for n in lengths]),
        "word": [word for words in sentences for word in words],
    }
    for j in range(n_layers):
        flat = np.concatenate([array[j] for array in layers]).reshape(-1)
        columns[f"layer_{j}"] = pa.FixedSizeListArray.from_arrays(pa.array(flat), width)
    parquet.write_table(pa.table(columns), path)


def _merge_parquet(parts: list[Path], path: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, parquet.read_schema(parts[0])) as writer:
        for part in parts:
            writer.write_table(parquet.read_table(part))


def _require(module: str, extra: str) -> None:
    """Raise ValueError if a module is not installed."""
    try:
        import_module(module)
    except ImportError:
        raise ValueError(
            f"this needs {module}: pip install 'spacy-elmo[{extra}]'"
        ) from None


WRITERS = {
    "hdf5": (_write_hdf5, _merge_hdf5),
    "parquet": (_write_parquet, _merge_parquet),
}
