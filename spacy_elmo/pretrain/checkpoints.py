"""Checkpoints that are whole or not there."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from ..bilm.formats.tensors import save_tensors
from ..files import replace_folder, restore_folder
from ..fingerprints import fingerprint_data, fingerprint_path

FACTS = "facts.json"
TENSORS = "tensors.safetensors"
OF_FACTS = "checksum_of_facts"
KEPT = 2


class Checkpoints:
    """A folder of checkpoints, each a folder of its own named by its step.

    folder (Path): Where.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """RETURNS (list[int]): What is there, in rising order."""
        names = self.folder.glob("step-*") if self.folder.exists() else []
        numbers = [name.name[5:] for name in names]
        return sorted(int(number) for number in numbers if number.isdigit())

    def save(
        self, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> None:
        """Write a checkpoint and remove old ones. Whenever this is interrupted, those
        that were there before are still whole."""
        part = self.folder / f"part-{step}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        save_tensors({k: t.contiguous() for k, t in tensors.items()}, part / TENSORS)
        facts = {**facts, "checksum": fingerprint_path(part / TENSORS)}
        facts[OF_FACTS] = _checksum_of_facts(facts)
        (part / FACTS).write_text(json.dumps(facts, indent=2) + "\n", "utf8")
        for path in (part / TENSORS, part / FACTS, part):
            _sync(path)
        replace_folder(part, self.folder / f"step-{step}")
        _sync(self.folder)
        steps = self.steps()
        before = [number for number in steps if number < step]
        # Later ones are those that could not be used when this run went on.
        later = [number for number in steps if number > step]
        for number in before[: 1 - KEPT] + later:
            shutil.rmtree(self.folder / f"step-{number}", ignore_errors=True)

    def clear(self) -> None:
        """Remove all: those of an earlier run would count as newer than the first of
        the next."""
        for step in self.steps():
            shutil.rmtree(self.folder / f"step-{step}", ignore_errors=True)
        self.clear_parts()

    def clear_parts(self) -> None:
        """Remove what a run that was killed left half written."""
        for part in self.folder.glob("part-*"):
            shutil.rmtree(part, ignore_errors=True)
        for old in self.folder.glob("step-*.old"):
            restore_folder(old.with_suffix(""))

    def load(
        self, warn: Callable[[str], None]
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that is whole.

        warn (Callable[[str], None]): Told of each that is not.
        RETURNS (tuple | None): Tensors and facts; None if there is none.
        """
        for step in reversed(self.steps()):
            folder = self.folder / f"step-{step}"
            try:
                facts = json.loads((folder / FACTS).read_text("utf8"))
                if facts["checksum"] != fingerprint_path(folder / TENSORS):
                    raise ValueError("its checksum is another")
                # Older versions did not write it.
                if facts.get(OF_FACTS, same := _checksum_of_facts(facts)) != same:
                    raise ValueError(f"the checksum of {FACTS} is another")
                return load_file(folder / TENSORS), facts
            except (OSError, ValueError, KeyError, TypeError) as error:
                warn(f"{folder}: cannot be used ({error}); trying the one before it")
        return None


def _checksum_of_facts(facts: dict[str, Any]) -> str:
    rest = {key: value for key, value in facts.items() if key != OF_FACTS}
    return fingerprint_data(rest)


def _sync(path: Path) -> None:
    """Have the system write what it holds, where it lets one open folders."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
