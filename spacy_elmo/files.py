"""Write files and folders so that readers never see an incomplete one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a temporary file in the folder of `path`, then rename it to `path`. Readers
    of `path` see the old file or the new one, always complete.

    write (Callable[[Path], Any]): Writes the file to the path that it is called with.
    """
    part = path.with_name(path.name + ".part")
    write(part)
    part.chmod(0o644)  # safetensors writes files for their owner only
    os.replace(part, path)


def replace_folder(part: Path, target: Path) -> None:
    """Move the finished folder `part` to `target`, and delete the folder that was there
    before. If this was interrupted, `restore_folder` makes `target` complete again."""
    old = _aside(target)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(part, target)
    shutil.rmtree(old, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Repair `target` after an interrupted `replace_folder`: if the new folder is not
    there, move the old one back, otherwise delete the old one."""
    old = _aside(target)
    if old.exists() and not target.exists():
        os.replace(old, target)
    shutil.rmtree(old, ignore_errors=True)


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")
