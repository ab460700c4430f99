"""Result files in a folder."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..results import (
    KINDS,
    Compare,
    Evaluation,
    Log,
    Neighbors,
    Perplexity,
    Probe,
    Senses,
    Step,
)

LOG = "log.jsonl"
# A folder with one of these is a pipeline, a biLM, a checkpoint, a corpus or an index:
# its JSON files are no results.
INSIDE = (
    "config.cfg",
    "corpus.json",
    "index.json",
    "meta.json",
    "weights.safetensors",
    "tensors.safetensors",
)

ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass
class Found(Generic[ResultT]):
    """A result and its file.

    file (str): Path in the folder.
    name (str): For headings.
    """

    file: str
    name: str
    data: ResultT


@dataclass
class Results:
    """What a folder holds. skipped (list[str]): A sentence for each file that cannot be
    used."""

    logs: list[Found[Log]] = field(default_factory=list)
    perplexity: list[Found[Perplexity]] = field(default_factory=list)
    probe: list[Found[Probe]] = field(default_factory=list)
    compare: list[Found[Compare]] = field(default_factory=list)
    senses: list[Found[Senses]] = field(default_factory=list)
    neighbors: list[Found[Neighbors]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        lists = (getattr(self, name) for name in ("logs", *KINDS))
        return sorted(found.file for results in lists for found in results)


def find_results(folder: Path) -> Results:
    """Read all result files in a folder and the folders in it, in the order of their
    paths. A file that is none is skipped."""
    results = Results()
    for path in _candidates(folder):
        file = path.relative_to(folder).as_posix()
        try:
            if path.name == LOG:
                place = path.parent.relative_to(folder).as_posix()
                name = folder.resolve().name if place == "." else place
                results.logs.append(Found(file, name, _read_log(path)))
            else:
                data = _parse(path.read_bytes())
                kind = _kind(data)
                name = data.get("title") or file[: -len(path.suffix)]
                found = Found(file, str(name), KINDS[kind](**data))
                getattr(results, kind).append(found)
        except ValidationError as error:
            results.skipped.append(f"{file}: {_first(error)}")
        except (ValueError, OSError) as error:
            results.skipped.append(f"{file}: {error}")
    return results


def _candidates(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if {"runs", "logs"} <= set(folders):  # of a comparison: only its table counts
            folders.clear()
            files = [name for name in files if name != "speed.json"]
        here = Path(place)
        if here != folder and any(name in files for name in INSIDE):
            folders.clear()
            continue
        for name in sorted(files):
            if name == LOG or name.endswith(".json"):
                yield here / name


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"found no JSON ({error})") from None


def _kind(data: Any) -> str:
    """RETURNS (str): A key of KINDS."""
    if isinstance(data, dict):
        if "kind" not in data and {"forward", "backward", "mean"} <= set(data):
            return "perplexity"
        kind = data.get("kind")
        if isinstance(kind, str) and kind in KINDS:
            return kind
    raise ValueError("found no result of a command of ours")


def _read_log(path: Path) -> Log:
    """Lines that are no rows are passed over: a run that is killed leaves half a
    line."""
    log = Log(steps=[], evaluations=[])
    for line in path.read_bytes().split(b"\n"):
        try:
            row = _parse(line)
        except ValueError:
            continue
        kind = row.get("type") if isinstance(row, dict) else None
        if kind == "step":
            log.steps.append(Step(**row))
        elif kind == "evaluation":
            log.evaluations.append(Evaluation(**row))
    if not log.steps and not log.evaluations:
        raise ValueError("found no rows of a pretraining")
    return log


def _first(error: ValidationError) -> str:
    """RETURNS (str): The first of all that is wrong, on a line."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place or 'the file'}: {first['msg']}"
