"""Load a biLM from any source (a path or a name), and save it in any format."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from ..bilm_base import BiLMBase
from ..data import BiLMData
from ..engines.embedder import check_precision
from ..errors import SourceError
from ..extras import has_torch, require_torch
from ..numpy_model import NumpyBiLM
from .bundled import bundled_names, find_bundled
from .hdf5 import find_hdf5, load_hdf5, save_hdf5
from .manylangs import is_manylangs, load_manylangs
from .native import is_native, load_native, save_native
from .quantize import STORED
from .small_files import MAX_BYTES, read_bytes

if TYPE_CHECKING:
    from ..model import BiLM

FORMATS = ("native", "hdf5")
ENGINES = ("auto", "torch", "numpy")
BEST, LAST = "model-best", "model-last"
# What the output folder of a pretraining contains before it has saved a model.
RUN_FILES = ("log.jsonl", "checkpoints")


@overload
def load_bilm(
    source: str | Path,
    *,
    engine: Literal["torch"],
    device: str = "cpu",
    precision: str = "float32",
) -> "BiLM": ...


@overload
def load_bilm(
    source: str | Path,
    *,
    engine: str = "auto",
    device: str = "cpu",
    precision: str = "float32",
) -> BiLMBase: ...


def load_bilm(
    source: str | Path,
    *,
    engine: str = "auto",
    device: str = "cpu",
    precision: str = "float32",
) -> BiLMBase:
    """Load a biLM.

    source (str | Path): A native biLM folder; a folder with options.json and
        weights.hdf5 (or another HDF5 file), or with *_options.json and *_weights.hdf5,
        or either of the two files; an ELMoForManyLangs folder; or the name of a bundled
        biLM.
    engine (str): What it computes with: "torch", "numpy", or "auto" for torch where it
        is installed.
    device (str): The torch device to put it on.
    precision (str): "float32", or "int8" for faster and approximate vectors on a CPU,
        with torch.
    RETURNS (BiLMBase): The model, ready to embed.
    """
    check_precision(precision)
    engine = choose_engine(engine, device=device, precision=precision)
    if engine == "torch":
        from ..torch_data import check_device

        check_device(device)
    bilm = make_model(load_data(source), engine)
    bilm.precision = precision
    bilm.source = str(source)
    return bilm.to(device) if engine == "torch" else bilm  # type: ignore[attr-defined]


def make_model(data: BiLMData, engine: str = "auto") -> BiLMBase:
    """Make the model of an engine from its data.

    engine (str): As for load_bilm.
    """
    if choose_engine(engine) == "numpy":
        return NumpyBiLM(data)
    from ..torch_data import make_bilm

    return make_bilm(data)


def choose_engine(
    engine: str = "auto", *, device: str = "cpu", precision: str = "float32"
) -> str:
    """Return "torch" or "numpy". Raise ValueError if the engine has no such device or
    precision, or is not installed. The arguments are those of load_bilm."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; expected one of {ENGINES}")
    unusual = f"device '{device}'" if device != "cpu" else ""
    if precision != "float32":
        unusual = f"precision '{precision}'"
    if engine == "numpy" and unusual:
        raise ValueError(
            f"found {unusual} with engine 'numpy'; expected engine 'torch'"
        )
    if engine == "torch" or unusual:
        require_torch(unusual or "engine 'torch'")
    if engine == "auto":
        return "torch" if has_torch() else "numpy"
    return engine


def load_data(source: str | Path) -> BiLMData:
    """Load the data of a biLM, without torch unless the files are ELMoForManyLangs'.

    source (str | Path): As for load_bilm.
    """
    try:
        return _load(Path(source))
    except MemoryError:
        raise SourceError(
            f"{source}: found more weights than fit into memory; expected a smaller "
            "biLM, or a machine with more memory"
        ) from None


def _load(path: Path) -> BiLMData:
    if not os.path.exists(path):  # also False if the name is too long
        path = find_bundled(str(path)) or path
    if not os.path.exists(path):
        bundled = ", ".join(bundled_names())
        raise SourceError(
            f"{path}: no such file or folder; expected a biLM, or the name of a "
            f"bundled one: {bundled}"
        )
    if path.is_dir():
        # The output folder of `pretrain` stands for the best model in it.
        if not is_native(path) and is_native(path / BEST):
            path = path / BEST
        if is_native(path):
            return load_native(path)
        if is_manylangs(path):
            return load_manylangs(path)
    pair = find_hdf5(path)
    if pair is not None:
        return load_hdf5(*pair)
    found = "a file of another kind"
    for folder in (path, path / BEST, path / LAST):  # of a pipeline, or `spacy train`
        if (folder / "meta.json").exists() and (folder / "config.cfg").exists():
            raise SourceError(_describe_pipeline(folder))
    if (path / "model").exists() and (path.parent / "config.cfg").exists():
        raise SourceError(_describe_pipeline(path.parent))  # one of its components
    if path.is_dir():
        if is_native(path / LAST) or any((path / name).exists() for name in RUN_FILES):
            raise SourceError(_describe_run(path))
        names = sorted(entry.name for entry in path.iterdir())
        found = ", ".join(names[:5]) + (", ..." if names[5:] else "") or "nothing"
    raise SourceError(
        f"{path}: found {found}; expected weights.safetensors with config.json, "
        "weights.hdf5 with options.json, or encoder.pkl with token_embedder.pkl"
    )


def _describe_run(folder: Path) -> str:
    """Say what to use of a pretraining that has no best model."""
    advice = "wait for its first evaluation (training.eval_frequency), or continue it"
    advice += " with `spacy elmo pretrain --resume`"
    if is_native(folder / LAST):
        advice = f"use {folder / LAST}, or continue it with --resume"
    return (
        f"{folder}: found the output folder of a pretraining without {BEST}; expected "
        f"a trained biLM: {advice}"
    )


def _describe_pipeline(folder: Path) -> str:
    """Say how to use the biLM of a spaCy pipeline."""
    try:
        text = read_bytes(folder / "config.cfg", "a config", MAX_BYTES).decode("utf8")
    except ValueError:
        text = ""
    section = r'^\[components\.([^\].]+)\]\n(?:(?!\[).*\n)*?factory *= *"elmo"'
    names = re.findall(section, text, re.MULTILINE)
    if not names:
        return (
            f"{folder}: found a spaCy pipeline without 'elmo'; expected a biLM, such "
            f"as {', '.join(bundled_names())} or the output folder of `spacy elmo "
            "pretrain`"
        )
    return (
        f"{folder}: found a spaCy pipeline; expected a biLM, but its component "
        f"'{names[0]}' has one: use the pipeline with spacy.load, or take the "
        f"component with nlp.add_pipe('{names[0]}', source=spacy.load({str(folder)!r}))"
    )


def save_data(
    data: BiLMData, folder: str | Path, format: str = "native", dtype: str = STORED
) -> None:
    """Write the data of a biLM to a folder.

    format (str): One of FORMATS.
    dtype (str): "stored" for the number type in which each array was loaded,
        "float32", or for smaller files "float16" or "int8". HDF5 has float32 only.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; expected one of {FORMATS}")
    if format == "native":
        save_native(data, Path(folder), dtype)
    elif dtype in (STORED, "float32"):
        save_hdf5(data, Path(folder))
    else:
        raise ValueError(f"dtype is {dtype!r} with format hdf5; expected float32")


def save_bilm(
    bilm: BiLMBase, folder: str | Path, format: str = "native", dtype: str = STORED
) -> None:
    """Write a biLM to a folder; arguments as for save_data."""
    save_data(bilm.data, folder, format, dtype)
