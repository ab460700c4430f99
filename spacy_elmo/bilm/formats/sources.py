"""Load a biLM from any source (a path or a name), and save it in any format."""

from pathlib import Path

from ..engines.embedder import check_precision
from ..errors import SourceError
from ..model import BiLM
from .bundled import bundled_names, find_bundled
from .hdf5 import find_hdf5, load_hdf5, save_hdf5
from .manylangs import is_manylangs, load_manylangs
from .native import is_native, load_native

FORMATS = ("native", "hdf5")


def load_bilm(
    source: str | Path, *, device: str = "cpu", precision: str = "float32"
) -> BiLM:
    """Load a biLM.

    source (str | Path): A native biLM folder; a folder with options.json and
        weights.hdf5, or with *_options.json and *_weights.hdf5, or either of the two
        files; an ELMoForManyLangs folder; or the name of a bundled biLM.
    device (str): The torch device to put it on.
    precision (str): "float32", or "int8" for faster and approximate vectors on a CPU.
    RETURNS (BiLM): The model, ready to embed.
    """
    check_precision(precision)
    bilm = _load(Path(source)).to(device)
    bilm.precision = precision
    return bilm


def _load(path: Path) -> BiLM:
    if not path.exists():
        path = find_bundled(str(path)) or path
    if not path.exists():
        bundled = ", ".join(bundled_names())
        raise SourceError(
            f"{path}: no such file or folder; expected a biLM, or {bundled}"
        )
    if path.is_dir():
        if is_native(path):
            return load_native(path)
        if is_manylangs(path):
            return load_manylangs(path)
    pair = find_hdf5(path)
    if pair is not None:
        return load_hdf5(*pair)
    found = "a file of another kind"
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir())
        found = ", ".join(names[:5]) + (", ..." if names[5:] else "") or "nothing"
    raise SourceError(
        f"{path}: found {found}; expected weights.safetensors with config.json, "
        "weights.hdf5 with options.json, or encoder.pkl with token_embedder.pkl"
    )


def save_bilm(
    bilm: BiLM,
    folder: str | Path,
    format: str = "native",
    dtype: str = "float32",
) -> None:
    """Write a biLM to a folder.

    format (str): One of FORMATS.
    dtype (str): "float32", or for smaller files "float16" or "int8", which only the
        native format has.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; expected one of {FORMATS}")
    if format == "native":
        bilm.save(folder, dtype)
    elif dtype == "float32":
        save_hdf5(bilm, Path(folder))
    else:
        raise ValueError(f"dtype is {dtype!r} with format hdf5; expected float32")
