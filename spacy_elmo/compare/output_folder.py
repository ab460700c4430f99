"""The output folder of a comparison: which file lies where."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import srsly
from pydantic import BaseModel, ValidationError

from ..files import write_atomically
from ..results import ComparisonResult, RunResult, Speed, Speeds, write_result
from .training_run import TrainingRun

ModelT = TypeVar("ModelT", bound=BaseModel)


class OutputFolder:
    """Reads and writes the files of a comparison.

    compare.json, compare.md: The table of all results.
    runs/NAME.json: The result of a run. logs/NAME.log: What its training printed.
    models/NAME: Its best pipeline.
    data/: The shares of the training data.
    speed.json: The speeds of the pipelines.
    work/, layers/: Needed only until all runs are finished, then removed.

    path (Path): The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.layers = path / "layers"

    def work(self, run: TrainingRun) -> Path:
        return self.path / "work" / run.name

    def model(self, run: TrainingRun) -> Path:
        return self.path / "models" / run.name

    def share(self, fingerprint: str, share: float) -> Path:
        """Return the path of a share of the training data.

        fingerprint (str): The fingerprint of all training data.
        """
        return self.path / "data" / f"{fingerprint[:12]}-{share:g}.spacy"

    def load_result(self, run: TrainingRun) -> RunResult | None:
        """Load the result of a run, which may be of another config, data or version:
        compare the fingerprints.

        RETURNS (RunResult | None): None if the file is missing or damaged.
        """
        return _load(self._result_path(run), RunResult)

    def write_result(self, run: TrainingRun, result: RunResult) -> RunResult:
        """Write the result of a run.

        RETURNS (RunResult): The result as `load_result` returns it: files hold rounded
            numbers, and a table must not depend on who computed it.
        """
        write_result(self._result_path(run), result)
        return RunResult.model_validate(srsly.read_json(self._result_path(run)))

    def load_speeds(self) -> dict[str, Speed]:
        """Load the known speeds, by the name of the run."""
        speeds = _load(self.path / "speed.json", Speeds)
        return {} if speeds is None else speeds.root

    def write_speeds(self, speeds: dict[str, Speed]) -> None:
        write_result(self.path / "speed.json", Speeds(speeds))

    def write_table(self, table: ComparisonResult, markdown: str) -> None:
        write_result(self.path / "compare.json", table)
        write_atomically(
            self.path / "compare.md",
            lambda part: part.write_text(markdown, encoding="utf-8"),
        )

    def clean_up(
        self, runs: Iterable[TrainingRun], fingerprint: str, *, keep_models: bool
    ) -> None:
        """Remove the files that are needed only until all runs are finished. All other
        files stay: they may be the user's.

        fingerprint (str): The fingerprint of the biLM, which is the name of the folder
            of its cached layers.
        """
        removable = [self.layers / fingerprint]
        for run in runs:
            removable.append(self.work(run))
            if not keep_models:
                removable.append(self.model(run))
        for path in removable:
            shutil.rmtree(path, ignore_errors=True)
        for folder in {path.parent for path in removable}:
            with suppress(OSError):  # missing, or not empty
                folder.rmdir()

    def _result_path(self, run: TrainingRun) -> Path:
        return self.path / "runs" / f"{run.name}.json"


def _load(path: Path, form: type[ModelT]) -> ModelT | None:
    try:
        return form.model_validate(srsly.read_json(path))
    except (OSError, ValueError, ValidationError):
        return None
