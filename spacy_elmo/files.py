"""Write files and folders so that readers never see a part of one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Have `write` make a file beside path, then move it there: whoever reads path
    sees the old file or the new one, never a part."""
    part = path.with_name(path.name + ".part")
    write(part)
    part.chmod(0o644)  # safetensors writes files for their owner only
    os.replace(part, path)


def replace_folder(part: Path, target: Path) -> None:
    """Put a finished folder where another may be. Whenever this is interrupted, the old
    one or the new one can be had, after `restore_folder`."""
    old = _aside(target)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(part, target)
    shutil.rmtree(old, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Undo a replacement that was interrupted, or tidy up after it."""
    old = _aside(target)
    if old.exists() and not target.exists():
        os.replace(old, target)
    shutil.rmtree(old, ignore_errors=True)


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")
