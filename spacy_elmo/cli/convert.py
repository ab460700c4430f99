"""`spacy elmo convert`: convert a biLM between file formats."""

import os
from enum import Enum
from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import BILM, check_output_folder, exit_on_error


class DType(str, Enum):
    stored = "stored"
    float32 = "float32"
    float16 = "float16"
    int8 = "int8"


class Format(str, Enum):
    native = "native"
    hdf5 = "hdf5"


@app.command("convert")
def convert_cli(
    source: Path = BILM,
    dest: Path = Argument(..., metavar="DEST", help="The folder to write to"),
    to: Format = Option(Format.native, "--to", help="The format to write"),
    dtype: DType = Option(
        DType.stored,
        "--dtype",
        help="The number type of weights in native format; by default, that of the "
        "source",
    ),
    no_softmax: bool = Option(
        False,
        "--no-softmax",
        help="Leave out the softmax layer, which only predicting words needs",
    ),
) -> None:
    """Convert a biLM between formats.

    It can read native folders (safetensors and JSON), HDF5 files with options.json
    (bilm-tf, AllenNLP) and ELMoForManyLangs folders. It can write native folders and
    HDF5.
    """
    from ..bilm.formats.sources import load_data, save_data
    from ..files import explain_errors, one_writer, write_folder_atomically

    def save(folder: Path) -> None:
        save_data(data, folder, to.value, dtype.value)

    with exit_on_error(), explain_errors(dest):
        check_dest(dest, to)
        check_output_folder(dest)
        data = load_data(source)
        if no_softmax:
            data.drop_softmax()
        dest.parent.mkdir(parents=True, exist_ok=True)
        if dest.exists():
            save(dest)
        else:
            with one_writer(dest):
                write_folder_atomically(dest, save)
    n_weights = sum(array.size for array in data.arrays.values())
    msg.good(f"Wrote {n_weights:,} weights to {dest} ({to.value})")


def check_dest(dest: Path, to: Format) -> None:
    """Raise ValueError unless dest is a folder with a biLM of this format, an empty
    folder, or nothing."""
    from ..bilm.formats import hdf5, native

    if not os.path.lexists(dest):
        return
    if not dest.is_dir():
        raise ValueError(f"{dest}: found a file; expected a folder to write to")
    files = native.FILES if to == Format.native else hdf5.FILES
    names = sorted(files.names_in(dest))
    has_model = files.weights in names and files.has_config(dest)
    if names and ("meta.json" in names or not has_model):
        found = ", ".join(names[:5]) + (", ..." if names[5:] else "")
        raise ValueError(
            f"{dest}: found {found}; expected an empty folder, a biLM in the format "
            f"{to.value} to replace, or no such folder"
        )
