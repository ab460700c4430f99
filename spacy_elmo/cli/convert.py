"""`spacy elmo convert`: convert a biLM between file formats."""

from enum import Enum
from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import SOURCE, exit_on_error


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
    source: Path = SOURCE,
    dest: Path = Argument(..., help="The folder to write to"),
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

    with exit_on_error():
        data = load_data(source)
        if no_softmax:
            data.drop_softmax()
        save_data(data, dest, to.value, dtype.value)
    n_weights = sum(array.size for array in data.arrays.values())
    msg.good(f"Wrote {n_weights:,} weights to {dest} ({to.value})")
