"""Folders that take the place of others as a whole."""

import os
import shutil
from pathlib import Path


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
