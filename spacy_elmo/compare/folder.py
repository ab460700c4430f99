"""The files of a comparison."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import srsly

from ..files import write_atomically
from ..results import write_json
from .plan import Run


class Folder:
    """runs/NAME.json is the result of a training, logs/NAME.log what it printed and
    models/NAME the best pipeline; data/ has the parts of the training data that are
    used. compare.json and compare.md are the table. The rest is gone in the end.

    path (Path): The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.layers = path / "layers"

    def work(self, run: Run) -> Path:
        return self.path / "work" / run.name

    def model(self, run: Run) -> Path:
        return self.path / "models" / run.name

    def share(self, digest: str, share: float) -> Path:
        """digest (str): Of all training data."""
        return self.path / "data" / f"{digest[:12]}-{share:g}.spacy"

    def read(self, run: Run) -> dict[str, Any] | None:
        """RETURNS (dict[str, Any] | None): The result of a run, if it is there and
        its config and data are still the same."""
        result = self._read_json(self._result(run))
        return result if result.get("key") == run.key else None

    def write(self, run: Run, result: dict[str, Any]) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): The result as `read` gives it: files round."""
        facts = {"variant": run.variant.name, "share": run.share, "seed": run.seed}
        write_json(self._result(run), {"key": run.key, **facts, **result})
        return self._read_json(self._result(run))

    def read_speeds(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): By the name of a run: its key, words a second."""
        return self._read_json(self.path / "speed.json")

    def write_speeds(self, speeds: dict[str, Any]) -> None:
        write_json(self.path / "speed.json", speeds)

    def write_table(self, compared: dict[str, Any], text: str) -> None:
        write_json(self.path / "compare.json", compared)
        write_atomically(
            self.path / "compare.md",
            lambda part: part.write_text(text, encoding="utf-8"),
        )

    def clean_up(
        self, runs: Iterable[Run], fingerprint: str, *, keep_models: bool
    ) -> None:
        """Remove what is needed only until all runs are done. Whatever else is in the
        folder may be somebody's.

        fingerprint (str): Of the biLM, which names the folder of its layers.
        """
        gone = [self.layers / fingerprint]
        for run in runs:
            gone.append(self.work(run))
            if not keep_models:
                gone.append(self.model(run))
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)
        for folder in {path.parent for path in gone}:
            with suppress(OSError):  # not there, or there is more in it
                folder.rmdir()

    def _result(self, run: Run) -> Path:
        return self.path / "runs" / f"{run.name}.json"

    def _read_json(self, path: Path) -> dict[str, Any]:
        try:
            data = srsly.read_json(path)
        except (OSError, ValueError):
            return {}  # not there, or broken: made anew
        return data if isinstance(data, dict) else {}
