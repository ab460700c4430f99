"""Replace the model in a folder as a whole, file by file, because the folder may have
other files, which are kept.

The new files are written to a folder of their own in it, which gets its name when it is
complete. Then they are moved out of it, the weights first and the config last. As long
as that folder has a config, the model consists of the files in it and those that have
been moved already; other files belong to the model before. So one of the two can be
loaded whenever a process is killed."""

import os
import shutil
from collections.abc import Callable, Iterable
from filecmp import cmp
from pathlib import Path
from typing import Any, NamedTuple

from ...files import is_temporary, one_writer, sync, write_folder_atomically
from ..errors import SourceError
from .small_files import read_json


class ModelFiles(NamedTuple):
    """The names of the files of a model in one format.

    weights (str): The file that is moved first.
    optional (tuple[str, ...]): The files that not every model has.
    config (str): The file that is moved last.
    new (str): The folder for the files of a new model. Each format has its own.
    is_config (Callable[[Any], bool]): Returns whether JSON data is a config of this
        format.
    """

    weights: str
    optional: tuple[str, ...]
    config: str
    new: str
    is_config: Callable[[Any], bool]

    def is_being_replaced(self, folder: Path) -> bool:
        """Return whether files of a new model have not been moved to their places."""
        return (folder / self.new / self.config).exists()

    def path(self, folder: Path, name: str) -> Path:
        """Return where a file of the model is, or where it should be."""
        new = folder / self.new
        if not self.is_being_replaced(folder) or not (
            (new / name).exists() or (new / self.weights).exists()
        ):
            return folder / name
        return new / name

    def names_in(self, folder: Path) -> set[str]:
        """List what is in a folder, as if all files of a new model had been moved. The
        temporary files of processes that were killed do not count."""
        names = {entry.name for entry in folder.iterdir()} - {self.new}
        if self.is_being_replaced(folder):
            names |= {entry.name for entry in (folder / self.new).iterdir()}
        return {name for name in names if not is_temporary(name)}

    def has_config(self, folder: Path) -> bool:
        """Return whether a folder has the config of a model in this format."""
        try:
            return self.is_config(read_json(self.path(folder, self.config)))
        except SourceError:
            return False

    def replace(
        self,
        folder: Path,
        write: Callable[[Path], None],
        optional_in: Callable[[Path], Iterable[str]],
        used: Iterable[str],
    ) -> None:
        """Replace the model in a folder, which is made if it does not exist.

        write (Callable[[Path], None]): Writes the new files into an empty folder.
        optional_in (Callable[[Path], Iterable[str]]): Returns the optional files that
            belong to the model in a folder; those without a new one are deleted.
        used (Iterable[str]): The optional files that loading the new model looks for.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with one_writer(folder):
            self._move_new_files(folder, optional_in)  # of a process that was killed
            has_model = self._check_model(folder)
            ours = {*optional_in(folder)} if has_model else set()

            def write_and_check(part: Path) -> None:
                write(part)
                self._check_used(folder, part, {*used} - ours)

            write_folder_atomically(folder / self.new, write_and_check)
            self._move_new_files(folder, optional_in)

    def _check_model(self, folder: Path) -> bool:
        """Return whether a folder has a model in this format. Raise SourceError if it
        has files with the names of one that are something else."""
        names = sorted({self.weights, self.config} & {*os.listdir(folder)})
        if names and not self.has_config(folder):
            raise SourceError(
                f"{folder}: found {' and '.join(names)} of a damaged biLM or of "
                "something else, which would be replaced; move or delete them, or "
                "choose another folder"
            )
        return bool(names)

    def _check_used(self, folder: Path, part: Path, names: set[str]) -> None:
        """Raise SourceError if a folder has files of somebody else that would be
        replaced by other ones in `part`, or loaded with the new model."""
        for name in sorted(names & {*os.listdir(folder)}):
            new = part / name
            # Another format may share the file, as both of ours do vocab.txt.
            if not (new.exists() and cmp(folder / name, new, shallow=False)):
                raise SourceError(
                    f"{folder / name}: found a file of something else, which would be "
                    "replaced or loaded with the biLM; move it away, or choose another "
                    "folder"
                )

    def _move_new_files(
        self, folder: Path, optional_in: Callable[[Path], Iterable[str]]
    ) -> None:
        """Move the files of a new model to their places, and delete those of the model
        that was there. If this was interrupted, call it again."""
        new = folder / self.new
        if self.is_being_replaced(folder):
            # The weights are moved first. If they are no longer here, the files of the
            # other model have already been deleted.
            if (new / self.weights).exists() and (folder / self.weights).exists():
                for name in optional_in(folder):
                    if not (new / name).exists():
                        (folder / name).unlink(missing_ok=True)
            for name in (self.weights, *self.optional, self.config):
                if (new / name).exists():
                    os.replace(new / name, folder / name)
                    sync(folder)
        shutil.rmtree(new, ignore_errors=True)
