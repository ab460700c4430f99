"""Keep what an earlier run has left in an output folder until a new run can take its
place, and never touch what no run has written."""

import json
import os
import shutil
from pathlib import Path

from ..bilm.formats.native import CONFIG, LEXICON, SOFTMAX, VOCAB, WEIGHTS
from ..files import restore_folder, sync, write_atomically
from ..regular_files import read_text
from ..results import LOG_NAME
from .checkpoints import Checkpoints, is_checkpoint

BEST, LAST, CHECKPOINTS = "model-best", "model-last", "checkpoints"
BILM_FILES = {CONFIG, LEXICON, SOFTMAX, VOCAB, WEIGHTS}
# A run that replaces another one is in NEW until its first checkpoint is saved. Then
# the folder is renamed to READY, and its files take the place of the earlier ones.
NEW, READY = ".spacy-elmo-new-run", ".spacy-elmo-ready-run"
REPLACED = "replaced.json"


class RunFolder:
    """The output folder of a run.

    output (Path): The folder, which need not exist.
    path (Path): Where the run writes: `output`, or a folder in it as long as an earlier
        run has not been replaced.
    """

    def __init__(self, output: Path) -> None:
        self.output = self.path = output
        self.checkpoints = Checkpoints(output / CHECKPOINTS)

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Raise ValueError if the folder holds an earlier run and nobody has said what
        to do with it, or if something else has the name of a file that is written."""
        for name in (BEST, LAST, LOG_NAME, CHECKPOINTS):
            path = self.output / name
            if os.path.lexists(path) and not _is_ours(path):
                raise ValueError(
                    f"{path}: found something that no pretraining has written; move it "
                    "away, or choose another --output"
                )
        if resume and overwrite:
            raise ValueError("found --resume and --overwrite; expected one of them")
        found = [name for name in self._find_earlier() if name != LOG_NAME]
        if found and not resume and not overwrite:
            raise ValueError(
                f"{self.output}: found an earlier run ({', '.join(found)}); expected "
                "--resume to continue it, or --overwrite to replace it"
            )

    def repair(self) -> None:
        """Finish or undo what a killed run was about to do."""
        self._move_new_run()
        shutil.rmtree(self.output / NEW, ignore_errors=True)
        self.checkpoints.clear_parts()
        for name in (BEST, LAST):
            restore_folder(self.output / name)

    def has_new_run(self) -> bool:
        """Return whether a run was stopped before it could replace the earlier one."""
        return (self.output / NEW).exists()

    def begin_new_run(self) -> bool:
        """Write to a separate folder until `replace` is called, if there is anything
        of an earlier run. Return whether there is."""
        new = self.output / NEW
        if self._find_earlier():
            new.mkdir()
            self.path = new
        return self.path == new

    def replace(self, keep: str | None = None) -> None:
        """Remove the earlier run and move the new one to its place, if that has not
        been done yet. If this is interrupted, `repair` finishes it.

        keep (str | None): The biLM that the new run started from, which is not removed.
        """
        if self.path == self.output:
            return
        source = Path(keep or "").resolve()
        replaced = [
            name
            for name in self._find_earlier()
            if (self.output / name).resolve() not in (source, *source.parents)
            or (self.path / name).exists()
        ]
        text = json.dumps(replaced)
        write_atomically(self.path / REPLACED, lambda part: part.write_text(text))
        os.replace(self.path, self.output / READY)
        sync(self.output)
        self.path = self.output
        self._move_new_run()

    def _find_earlier(self) -> list[str]:
        """List what an earlier run has written, as relative paths."""
        found = [f"{CHECKPOINTS}/step-{step}" for step in self.checkpoints.steps()]
        names = [
            name for name in (BEST, LAST, LOG_NAME) if (self.output / name).exists()
        ]
        return found + names

    def _move_new_run(self) -> None:
        """Move a run that is READY to the output folder. The list of what it replaces
        is deleted before anything is moved, so that nothing new is ever removed."""
        ready = self.output / READY
        if not ready.is_dir() or ready.is_symlink():
            return
        if (ready / REPLACED).exists():
            replaced = _load_replaced(ready / REPLACED)
            for name in self._find_earlier():
                if name in replaced:
                    _remove(self.output / name)
            sync(self.output)
            (ready / REPLACED).unlink()
        (self.output / CHECKPOINTS).mkdir(exist_ok=True)
        for step in Checkpoints(ready / CHECKPOINTS).steps():
            name = f"{CHECKPOINTS}/step-{step}"
            os.replace(ready / name, self.output / name)
        for name in (BEST, LAST, LOG_NAME):
            if (ready / name).exists():
                os.replace(ready / name, self.output / name)
        sync(self.output / CHECKPOINTS)
        sync(self.output)
        shutil.rmtree(ready)


def _load_replaced(path: Path) -> list[str]:
    """Load the names of what a run replaces. Raise ValueError if they are damaged."""
    try:
        names = json.loads(read_text(path))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{path}: found no list of names in JSON; expected what the new run "
            f"replaces, or no folder {READY}, which holds that run"
        )
    return names


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    """Return whether a run can have written a file or folder of this name."""
    if path.is_symlink():
        return False
    if path.name == LOG_NAME:
        return path.is_file() and _is_log(path)
    if not path.is_dir():
        return False
    if path.name == CHECKPOINTS:
        return all(is_checkpoint(step) for step in path.glob("step-*"))
    return {entry.name for entry in path.iterdir()} <= BILM_FILES


def _is_log(path: Path) -> bool:
    """Return whether a file is empty or begins with a row of a log, which may be cut
    off because the run was killed."""
    with path.open("rb") as file:
        start = file.read(9)
    return b'{"type": '.startswith(start)
