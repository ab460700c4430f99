"""Write the vectors of a text to a file, part by part, so that an interrupted run can
be continued."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from ..bilm import BiLMBase
from ..files import explain_errors, one_writer, remove_parts, write_atomically
from ..hdf5_files import create_hdf5
from ..parts.part_tasks import divide, part_key
from ..required import require
from .embed_part import embed_part, identify_rows
from .part_files import Part, is_usable, read_part, write_part
from .vector_table import COLUMNS, make_table

PART = 1000  # sentences
HEX = "[0-9a-f]"
PART_NAME = f"{'[0-9]' * 8}-{HEX * 16}.vectors"
# The module that writes a format, and the extra of this package that installs it.
NEEDED = {"hdf5": ("h5py", "hdf5"), "parquet": ("pyarrow", "parquet")}
FORMATS = {".hdf5": "hdf5", ".h5": "hdf5", ".parquet": "parquet"}


def embed_file(
    bilm: BiLMBase,
    sentences: Iterable[list[str]],
    path: Path,
    *,
    on_progress: Callable[[int], None] = lambda n: None,
    say: Callable[[str], None] = print,
) -> int:
    """Write all layers of all sentences to a file. If an earlier run with the same biLM
    and sentences was interrupted, the parts that it has written are used.

    sentences (Iterable[list[str]]): The words of each sentence.
    path (Path): A .hdf5, .h5 or .parquet file. HDF5 files have the layout of bilm-tf:
        for each sentence a data set, (n_layers + 1, n_tokens, width), whose name is the
        number of the sentence. Parquet files have a row for each token. Until the file
        is finished, its parts are in a folder beside it.
    on_progress (Callable[[int], None]): Called with the number of sentences done.
    say (Callable[[str], None]): Called with a sentence about each damaged part.
    RETURNS (int): The number of sentences.
    """
    check_target(path)
    folder = _parts_folder(path)
    merge = MERGERS[FORMATS[path.suffix]]
    with explain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with one_writer(path):
        with explain_errors(folder):
            folder.mkdir(exist_ok=True)
        remove_parts(folder)
        for part in folder.glob(PART_NAME):
            if part.is_dir():
                raise ValueError(
                    f"{part}: found a folder; expected a part of an interrupted run, "
                    "or nothing"
                )
        parts, n_sentences = _write_parts(bilm, sentences, folder, on_progress, say)
        if parts:
            write_atomically(path, lambda file: merge(map(read_part, parts), file))
        for part in folder.glob(PART_NAME):
            part.unlink()
        if not any(folder.iterdir()):  # other files are the user's
            folder.rmdir()
    if not parts:
        raise ValueError("found no sentences; expected some text")
    return n_sentences


def _write_parts(
    bilm: BiLMBase,
    sentences: Iterable[list[str]],
    folder: Path,
    on_progress: Callable[[int], None],
    say: Callable[[str], None],
) -> tuple[list[Path], int]:
    """Write the parts that are not there yet.

    RETURNS (tuple[list[Path], int]): The parts, and the number of sentences.
    """
    made_by = identify_rows(bilm)
    parts: list[Path] = []
    n_done = 0
    for number, part in enumerate(divide(sentences, PART)):
        # The name has a fingerprint of the biLM and the text, because the folder may
        # contain parts of a run with another biLM or text.
        key = part_key(made_by, n_done, part)
        target = folder / f"{number:08}-{key}.vectors"
        if not is_usable(target, say):
            for other in folder.glob(f"{number:08}-{HEX * 16}.vectors"):
                other.unlink()
            write_part(target, Part(n_done, part, embed_part(bilm, part)))
        parts.append(target)
        n_done += len(part)
        on_progress(n_done)
    return parts, n_done


def _parts_folder(path: Path) -> Path:
    return path.with_name(path.name + ".parts")


def check_target(path: Path) -> None:
    """Raise ValueError if the path has an unknown suffix, needs a module that is not
    installed, or is something that embed_file has not written. Call this first, because
    embedding may take hours."""
    if path.suffix not in FORMATS:
        raise ValueError(
            f"{path}: found the suffix '{path.suffix}'; expected one of "
            + ", ".join(FORMATS)
        )
    if path.is_dir():
        raise ValueError(f"{path}: found a folder; expected the name of a file")
    kind = FORMATS[path.suffix]
    require(*NEEDED[kind])
    if path.exists() and not (path.is_file() and _is_ours(path, kind)):
        raise ValueError(
            f"{path}: found a file of something else, which is not overwritten; "
            "expected vectors of this command, or no such file"
        )
    folder = _parts_folder(path)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ValueError(
            f"{folder}: found a file or a link; expected a folder with the parts of an "
            "interrupted run, or nothing"
        )


def _is_ours(path: Path, kind: str) -> bool:
    """Return whether a file is empty or was written by embed_file."""
    if not path.stat().st_size:
        return True
    try:
        if kind == "hdf5":
            return _has_layers(path)
        from pyarrow import parquet

        return bool(parquet.read_schema(path).names[: len(COLUMNS)] == COLUMNS)
    except (OSError, ValueError, RuntimeError):  # not a file of this format
        return False


def _has_layers(path: Path) -> bool:
    """Return whether an HDF5 file has what _merge_hdf5 writes: nothing but data sets of
    numbered sentences. At most 1000 of them are looked at."""
    import h5py

    with h5py.File(path, "r") as file:
        found = [(name, file.get(name)) for name in islice(file, 1000)]
        return bool(found and not file.attrs) and all(
            name.isdigit()
            and isinstance(data, h5py.Dataset)
            and data.dtype == "float32"
            and data.ndim == 3
            and not data.attrs
            for name, data in found
        )


def _merge_hdf5(parts: Iterable[Part], path: Path) -> None:
    with create_hdf5(path) as add:
        for part in parts:
            for number, array in enumerate(part.layers, part.first):
                add(str(number), array)


def _merge_parquet(parts: Iterable[Part], path: Path) -> None:
    from pyarrow import parquet

    # pyarrow can write to open files of any name, but not to all names.
    with path.open("wb") as file:
        writer = None
        try:
            for part in parts:
                table = make_table(part)
                if writer is None:
                    writer = parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()


MERGERS = {"hdf5": _merge_hdf5, "parquet": _merge_parquet}
