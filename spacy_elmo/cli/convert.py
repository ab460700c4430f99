from enum import Enum
from pathlib import Path

from typer import Argument, Option
from wasabi import msg

from . import app


class DType(str, Enum):
    float32 = "float32"
    float16 = "float16"
    int8 = "int8"


class Format(str, Enum):
    native = "native"
    hdf5 = "hdf5"


@app.command("convert")
def convert_cli(
    source: Path = Argument(..., help="A biLM of any kind: a folder, or an HDF5 file"),
    dest: Path = Argument(..., help="The folder to write"),
    to: Format = Option(Format.native, "--to", help="What to write"),
    dtype: DType = Option(
        DType.float32, "--dtype", help="How native weights are stored"
    ),
    no_softmax: bool = Option(
        False, "--no-softmax", help="Leave the output layer out: vectors only"
    ),
) -> None:
    """Convert a biLM between formats.

    Reads native folders (safetensors and JSON), HDF5 with options.json (bilm-tf,
    AllenNLP) and ELMoForManyLangs folders; writes native folders and HDF5.
    """
    from ..bilm.errors import SourceError
    from ..bilm.formats.sources import load_bilm, save_bilm

    try:
        bilm = load_bilm(source)
        if no_softmax:
            bilm.drop_softmax()
        save_bilm(bilm, dest, to.value, dtype.value)
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    n_weights = sum(weight.numel() for weight in bilm.parameters())
    msg.good(f"Wrote {n_weights:,} weights to {dest} ({to.value})")
