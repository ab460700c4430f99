"""Save and load checkpoints, so that an interruption never leaves an incomplete one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..bilm.formats.tensors import save_arrays
from ..files import OLD, remove_parts, restore_folder, write_folder_atomically
from ..fingerprints import fingerprint_data, fingerprint_path
from ..regular_files import read_regular
from .checkpoint_facts import check_facts

FACTS = "facts.json"
TENSORS = "tensors.safetensors"
FACTS_CHECKSUM = "checksum_of_facts"
N_KEPT = 2
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    RecursionError,
    SafetensorError,
)


class Checkpoints:
    """A folder with a subfolder for each checkpoint, named by its step.

    folder (Path): The folder, which need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, in ascending order."""
        names = self.folder.glob("step-*") if self.folder.exists() else []
        numbers = [name.name[5:] for name in names]
        return sorted(int(number) for number in numbers if number.isdecimal())

    def save(
        self, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> None:
        """Save a checkpoint and remove old ones. If this is interrupted, the earlier
        checkpoints are still complete.

        step (int): The step after which it is saved.
        tensors (dict[str, Tensor]): The tensors to save, by name.
        facts (dict[str, Any]): The other data to save, which JSON must support.
        """

        def write(part: Path) -> None:
            arrays = {name: t.numpy() for name, t in tensors.items()}
            save_arrays(arrays, part / TENSORS)
            full = {**facts, "checksum": fingerprint_path(part / TENSORS)}
            full[FACTS_CHECKSUM] = checksum_facts(full)
            (part / FACTS).write_text(json.dumps(full, indent=2) + "\n", "utf8")

        write_folder_atomically(self.folder / f"step-{step}", write)
        steps = self.steps()
        before = [number for number in steps if number < step]
        # Checkpoints of later steps are damaged, or this run would have resumed there.
        later = [number for number in steps if number > step]
        for number in before[: 1 - N_KEPT] + later:
            shutil.rmtree(self.folder / f"step-{number}", ignore_errors=True)

    def clear_parts(self) -> None:
        """Remove the incomplete checkpoints of a killed run, and restore the complete
        ones that it was about to replace."""
        remove_parts(self.folder)
        for old in self.folder.glob(f"step-*{OLD}"):
            restore_folder(old.with_suffix(""))

    def load(
        self, say: Callable[[str], None]
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load the newest checkpoint that is complete.

        say (Callable[[str], None]): Called with a sentence about each damaged
            checkpoint.
        RETURNS (tuple | None): The tensors and facts; None if no checkpoint is usable.
        """
        for step in reversed(self.steps()):
            folder = self.folder / f"step-{step}"
            try:
                facts = json.loads(read_regular(folder / FACTS))
                if facts["checksum"] != fingerprint_path(folder / TENSORS):
                    raise ValueError(f"the checksum of {TENSORS} does not match")
                if facts[FACTS_CHECKSUM] != checksum_facts(facts):
                    raise ValueError(f"the checksum of {FACTS} does not match")
                tensors = load_file(folder / TENSORS)
                check_facts(facts, tensors)
                return tensors, facts
            except UNREADABLE as error:
                reason = f"no {error}" if isinstance(error, KeyError) else error
                say(f"{folder}: cannot be used ({reason}); trying the one before it")
        return None


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder has nothing but the files of a checkpoint, some of which
    may be missing."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return {path.name for path in folder.iterdir()} <= {FACTS, TENSORS}


def checksum_facts(facts: dict[str, Any]) -> str:
    """Compute the checksum of the facts of a checkpoint."""
    rest = {key: value for key, value in facts.items() if key != FACTS_CHECKSUM}
    return fingerprint_data(rest)
