"""The output folder of a comparison, and the paths of the files in it."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from ..files import explain_errors, one_writer, remove_parts, write_atomically
from ..regular_files import read_regular
from ..results import ComparisonResult, RunResult, Speed, Speeds, write_result
from .training_run import TrainingRun, name_share

ModelT = TypeVar("ModelT", bound=BaseModel)


class OutputFolder:
    """Reads and writes the files of a comparison. NAME is the name of a run.

    compare.json, compare.md: The table of all results.
    runs/NAME.json: The result of a run.
    logs/NAME.log: The output of its training.
    models/NAME: The best pipeline of its training.
    data/: The shares of the training data.
    speed.json: The speeds of the pipelines.
    work/, layers/: Temporary files, removed when all runs are finished.

    path (Path): The folder.
    say (Callable[[str], None]): Prints a line.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path = path
        self.say = say
        self.logs = path / "logs"
        self.layers = path / "layers"

    @contextmanager
    def written_by_one(self) -> Iterator[None]:
        """Make the folder, and be the only process that writes to it while the block
        runs. If the disk is full, even for a worker process, raise WriteError."""
        with explain_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with one_writer(self.path):
                for name in ("runs", "data"):
                    remove_parts(self.path / name)
                yield

    def work(self, run: TrainingRun) -> Path:
        return self.path / "work" / run.name

    def model(self, run: TrainingRun) -> Path:
        return self.path / "models" / run.name

    def share(self, fingerprint: str, share: float) -> Path:
        """Return the path of a share of the training data.

        fingerprint (str): The fingerprint of all training data.
        """
        return self.path / "data" / f"{fingerprint[:12]}-{name_share(share)}.spacy"

    def load_result(self, run: TrainingRun) -> RunResult | None:
        """Load the result of a run. The caller has to compare the fingerprints, because
        the result may come from another config, other data or other versions.

        RETURNS (RunResult | None): None if the file is missing or damaged.
        """
        path = self._result_path(run)
        result = self._load(path, RunResult)
        if result is not None and not result.is_whole():
            self.say(f"{path}: the checksum does not match; training this run again")
            return None
        return result

    def write_result(self, run: TrainingRun, result: RunResult) -> RunResult:
        """Write the result of a run.

        RETURNS (RunResult): The result as `load_result` returns it.
        """
        result = result.add_checksum()
        write_result(self._result_path(run), result)
        return result

    def load_speeds(self) -> dict[str, Speed]:
        """Load the known speeds, by the name of the run."""
        path = self.path / "speed.json"
        speeds = self._load(path, Speeds)
        if speeds is None:
            return {}
        if not all(speed.is_whole() for speed in speeds.root.values()):
            self.say(f"{path}: a checksum does not match; measuring again")
            return {}
        return speeds.root

    def write_speeds(self, speeds: dict[str, Speed]) -> None:
        checked = {name: speed.add_checksum() for name, speed in speeds.items()}
        write_result(self.path / "speed.json", Speeds(checked))

    def write_table(self, table: ComparisonResult, markdown: str) -> None:
        write_result(self.path / "compare.json", table)
        write_atomically(
            self.path / "compare.md",
            lambda part: part.write_text(markdown, encoding="utf-8"),
        )

    def clean_up(
        self, runs: Iterable[TrainingRun], fingerprint: str, *, keep_models: bool
    ) -> None:
        """Remove the temporary files of these runs. All other files stay, because they
        may be the user's.

        fingerprint (str): The fingerprint of the biLM. It is also the name of the
            folder with the cached layers.
        keep_models (bool): Whether to keep the pipelines of the runs.
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

    def _load(self, path: Path, form: type[ModelT]) -> ModelT | None:
        try:
            return form.model_validate_json(read_regular(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # pydantic's errors are ValueErrors
            self.say(f"{path}: found no result that can be read; computing it again")
            return None
