"""Load the result files in a folder.

Every file is either shown in the report, or mentioned as not shown: by itself, with its
folder, or with all files of its suffix. Only the files of the single runs of a
comparison are not mentioned, because compare.json contains their results.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..regular_files import open_regular, read_regular
from ..results import (
    KINDS,
    LOG_NAME,
    METRICS_NAME,
    ComparisonResult,
    EvaluationRow,
    Neighbors,
    Perplexity,
    PipelineScores,
    Probe,
    RunResult,
    Senses,
    Speeds,
    StepRow,
    find_metrics,
)

# If a folder has one of these files, it does not contain results, but something else.
MARKERS = {
    "meta.json": "a pipeline",
    "config.cfg": "a pipeline",
    "weights.safetensors": "a biLM",
    "tensors.safetensors": "a checkpoint",
    "corpus.json": "a corpus",
    "index.json": "an index",
}

LARGEST = 1e100
MAX_LINE = 2**24  # bytes of a row of a log

DataT = TypeVar("DataT")


class PretrainingLog(BaseModel):
    """The rows of a log.jsonl."""

    steps: list[StepRow]
    evaluations: list[EvaluationRow]

    @property
    def best(self) -> EvaluationRow | None:
        # A comparison with NaN is false.
        numbers = [row for row in self.evaluations if not math.isnan(row.mean)]
        return min(numbers or self.evaluations, key=lambda row: row.mean, default=None)


@dataclass
class ResultFile(Generic[DataT]):
    """A result file.

    file (str): Its path, relative to the folder of which a report is made.
    name (str): Its name in headings.
    data (DataT): Its contents.
    """

    file: str
    name: str
    data: DataT


@dataclass
class Results:
    """The results in a folder.

    skipped (list[str]): A sentence for each JSON file or log that cannot be shown, with
        the reason.
    passed_over (list[str]): Everything else that is not shown: folders of models,
        corpora and indexes, hidden folders, links, and files that are not JSON.
    """

    logs: list[ResultFile[PretrainingLog]] = field(default_factory=list)
    perplexity: list[ResultFile[Perplexity]] = field(default_factory=list)
    probe: list[ResultFile[Probe]] = field(default_factory=list)
    compare: list[ResultFile[ComparisonResult]] = field(default_factory=list)
    senses: list[ResultFile[Senses]] = field(default_factory=list)
    neighbors: list[ResultFile[Neighbors]] = field(default_factory=list)
    scores: list[ResultFile[PipelineScores]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """List the files that are shown."""
        lists = (getattr(self, name) for name in ("logs", *KINDS))
        return sorted(found.file for results in lists for found in results)


class ForeignFile(ValueError):
    """An error for a file that is not a result of any `spacy elmo` command."""


def load_results(folder: Path) -> Results:
    """Load all result files in a folder and its subfolders, in the order of their
    paths."""
    loader = _Loader(folder)
    loader.load_folders()
    for suffix, n in sorted(loader.other_files.items()):
        files = "file" if n == 1 else "files"
        loader.results.passed_over.append(f"{n:,} {suffix} {files}")
    return loader.results


class _Loader:
    """Goes through the folder, and collects results.

    other_files (Counter[str]): The number of files that are neither JSON nor a log, for
        each suffix.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = Results()
        self.other_files: Counter[str] = Counter()

    def load_folders(self) -> None:
        """Load the files of each folder, then its subfolders."""
        waiting = [(self.root, False)]  # a loop, because recursion has a limit
        while waiting:
            folder, in_model = waiting.pop()
            if folder != self.root and folder.name.startswith("."):
                self.results.passed_over.append(f"{self._place(folder)} (hidden)")
            elif folder != self.root and folder.is_symlink():
                # It may lead to a parent folder, without end.
                self.results.passed_over.append(f"{self._place(folder)} (a link)")
            else:
                waiting += reversed(self._load_folder(folder, in_model))

    def _load_folder(self, folder: Path, in_model: bool) -> list[tuple[Path, bool]]:
        """Load the files of a folder.

        in_model (bool): Whether the folder belongs to a model, a corpus or an index.
            Then JSON files that are not results are ignored. But results that a user
            has put there are shown.
        RETURNS (list[tuple[Path, bool]]): Its subfolders, and `in_model` for each.
        """
        place = self._place(folder)
        try:
            entries = sorted(folder.iterdir(), key=lambda path: path.name)
            subfolders = [path for path in entries if path.is_dir()]
        except OSError as error:
            self.results.skipped.append(f"{place}: {error}")
            return []
        names = {path.name for path in entries}
        kinds = [kind for name, kind in MARKERS.items() if name in names]
        if kinds and folder != self.root and not in_model:
            in_model = True
            if not _is_model_of_comparison(folder):
                self.results.passed_over.append(f"{place} ({kinds[0]})")
        for path in entries:
            if path not in subfolders:
                self._load_file(path, in_model)
        return [(path, in_model) for path in subfolders]

    def _load_file(self, path: Path, in_model: bool) -> None:
        file = self._place(path)
        try:
            if path.name == LOG_NAME:
                log = _load_log(path)
                self.results.logs.append(ResultFile(file, self._name(path), log))
            elif path.suffix == ".json":
                data = _parse(read_regular(path))
                if not _belongs_to_comparison(path, data):
                    kind = _find_kind(data)
                    _check_numbers(data)
                    name = str(data.get("title") or self._name(path))
                    result = KINDS[kind](**data)
                    found = getattr(self.results, kind)
                    found.append(ResultFile(file, name, result))
            elif not in_model:
                self.other_files[path.suffix or path.name] += 1
        except ForeignFile as error:
            if not in_model:
                self.results.skipped.append(f"{file}: {error}")
        except ValidationError as error:
            self.results.skipped.append(f"{file}: {_first_problem(error)}")
        except (ValueError, OSError, RecursionError) as error:
            self.results.skipped.append(f"{file}: {error}")

    def _name(self, path: Path) -> str:
        """Return the name of a file in headings: its path or, if each folder has a file
        of that name, that of its folder."""
        if path.name not in (LOG_NAME, METRICS_NAME):
            return self._place(path).removesuffix(path.suffix)
        folder = self._place(path.parent)
        return self.root.resolve().name if folder == "." else folder

    def _place(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _is_model_of_comparison(folder: Path) -> bool:
    """Return whether a folder is a pipeline that was trained for a comparison. It is
    then called models/NAME, and runs/NAME.json has its scores."""
    output = folder.parent.parent
    result = output / "runs" / f"{folder.name}.json"
    return folder.parent.name == "models" and result.is_file()


def _belongs_to_comparison(path: Path, data: Any) -> bool:
    """Return whether a file has the result of a single run of a comparison, or the
    speeds of all runs. Such files are not shown, because compare.json has the same
    numbers."""
    form: type[BaseModel]
    if path.parent.name == "runs":
        form = RunResult
    elif path.name == "speed.json" and (path.parent / "runs").is_dir():
        form = Speeds
    else:
        return False
    try:
        form.model_validate(data)
    except ValidationError:
        return False
    return True


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ForeignFile(f"found no JSON ({error})") from None


def _check_numbers(data: Any) -> None:
    """Raise ValueError if data has a number that no chart can show."""
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            _check_numbers(value)
    elif isinstance(data, int | float) and not -LARGEST < data < LARGEST:
        raise ValueError("found NaN or a number beyond 1e100; expected smaller ones")


def _find_kind(data: Any) -> str:
    """Return the kind of a result, which is a key of KINDS."""
    if isinstance(data, dict):
        if "kind" not in data and {"forward", "backward", "mean"} <= set(data):
            return "perplexity"
        if "kind" not in data and "speed" in data and find_metrics([data]):
            return "scores"
        kind = data.get("kind")
        if isinstance(kind, str) and kind in KINDS:
            return kind
    raise ForeignFile("found no result of a `spacy elmo` command")


def _load_log(path: Path) -> PretrainingLog:
    """Load the log of a pretraining. Lines that are not complete rows are ignored,
    because a training that was killed may leave half a line, and so are rows with
    counts that no training reaches."""
    log = PretrainingLog(steps=[], evaluations=[])
    with open_regular(path) as file:
        while line := file.readline(MAX_LINE):
            try:
                row = _parse(line)
            except ForeignFile:
                continue
            if not isinstance(row, dict) or _has_huge_int(row):
                continue
            kind = row.get("type")
            if kind == "step":
                log.steps.append(StepRow(**_show_as_gaps(row)))
            elif kind == "evaluation":
                log.evaluations.append(EvaluationRow(**_show_as_gaps(row)))
    if not log.steps and not log.evaluations:
        raise ValueError("found no rows of a pretraining")
    return log


def _has_huge_int(row: dict[str, Any]) -> bool:
    """Return whether a row has an int that is too large for a float."""
    numbers = (value for value in row.values() if isinstance(value, int))
    return not all(-LARGEST < number < LARGEST for number in numbers)


def _show_as_gaps(row: dict[str, Any]) -> dict[str, Any]:
    """Replace the numbers of a row that no chart can show by NaN, which makes a gap in
    a curve. A training that diverges writes such numbers."""
    return {
        key: float("nan")
        if isinstance(value, float) and not -LARGEST < value < LARGEST
        else value
        for key, value in row.items()
    }


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place or 'the file'}: {first['msg']}"
