"""Write files and folders so that readers never see an incomplete one, that nothing is
lost when the machine stops, and that one process at a time writes an output."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from stat import S_IMODE
from typing import Any

PART, OLD, LOCK = ".part", ".spacy-elmo-old", ".spacy-elmo-lock"
# What desktops write into any folder that is looked at.
OF_DESKTOPS = (".DS_Store", "Thumbs.db", "desktop.ini")
RANDOM = "[0-9a-f]" * 16  # matches the random part of temporary names
END = 1 + 16 + len(PART)  # the length of what follows the output's name in them
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What file systems without locks or fsync answer.
UNSUPPORTED = (
    errno.ENOLCK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EINVAL,
)
LOCK_BYTE = 2**30  # Windows does not let others read the byte that is locked

# The handles of the locks that this process holds.
_held: set[int] = set()


class WriteError(OSError):
    """Raised when an output cannot be written. Its message is a whole sentence."""


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a temporary file in the folder of `path`, then rename it to `path`. Readers
    of `path` see the old file or the new one, always complete; when this returns, the
    new one is on the disk. The temporary file has a name of its own, so that several
    processes may write `path` at the same time: the last one wins.

    write (Callable[[Path], Any]): Writes the file to the path that it is called with.
    """
    part = part_path(path)
    with explain_errors(path, part):
        os.close(_open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            mode = S_IMODE(part.stat().st_mode)
            write(part)
            if S_IMODE(part.stat().st_mode) != mode:
                part.chmod(mode)  # safetensors writes files for their owner only
            sync(part)
            os.replace(part, path)
            sync(path.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_folder_atomically(target: Path, write: Callable[[Path], Any]) -> None:
    """Write a temporary folder beside `target`, then rename it to `target`; a folder
    that was there before is deleted. When this returns, the new one is on the disk. If
    `target` is a link, it stays one, and the folder that it leads to is replaced.

    write (Callable[[Path], Any]): Writes the files into the folder it is called with.
    """
    target = target.resolve()
    part = part_path(target)
    with explain_errors(target, part):
        target.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        try:
            write(part)
            replace_folder(part, target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def part_path(path: Path) -> Path:
    """Choose a name beside `path` that nobody can guess."""
    return path.with_name(f"{_shorten(path.name)}.{secrets.token_hex(8)}{PART}")


def _shorten(name: str) -> str:
    """Shorten the name of an output, because file systems limit the length of names.
    Different names stay different."""
    if len(name) <= 50:
        return name
    return f"{name[:41]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"


def remove_parts(folder: Path, name: str = "*") -> None:
    """Delete the temporary files and folders that killed processes have left. Call this
    only where no other process writes, such as in `one_writer`.

    name (str): The name of the output that they were for; by default any, except those
        for which another `one_writer` runs.
    """
    prefix = "*" if name == "*" else escape(_shorten(name))
    parts = [*folder.glob(f"{prefix}.{RANDOM}{PART}")]
    outputs = {_shorten(path.name): path for path in folder.iterdir()} if parts else {}
    for part in parts:
        if name == "*" and _is_being_written(part, outputs):
            continue
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _is_being_written(part: Path, outputs: dict[str, Path]) -> bool:
    """Return whether a process holds the lock of the output of a temporary file.

    outputs (dict[str, Path]): What is in the same folder, by its shortened name.
    """
    short = part.name[:-END]
    return _is_locked(_lock_path(outputs.get(short, part.with_name(short))))


def is_temporary(name: str) -> bool:
    """Return whether a name in a folder is that of its lock, or of a temporary file or
    folder."""
    return name == LOCK or fnmatchcase(name, f"*.{RANDOM}{PART}")


def replace_folder(part: Path, target: Path) -> None:
    """Move the finished folder `part` to `target`, and delete the folder that was there
    before. If this was interrupted, `restore_folder` makes `target` complete again."""
    sync_folder(part)
    old = _aside(target)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(part, target)
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Repair `target` after an interrupted `replace_folder`: if the new folder is not
    there, move the old one back, otherwise delete the old one."""
    target = target.resolve()
    old = _aside(target)
    if old.exists() and not target.exists():
        os.replace(old, target)
    shutil.rmtree(old, ignore_errors=True)


def _aside(target: Path) -> Path:
    return target.with_name(target.name + OLD)


def _open(path: Path, flags: int) -> int:
    """Open a file but no symbolic link, which somebody else may have put there."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o666)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, so that it survives a power cut."""
    is_folder = path.is_dir()
    try:
        flags = os.O_RDONLY if is_folder or os.name == "posix" else os.O_RDWR
        handle = os.open(path, flags)
    except OSError:
        if is_folder:  # some systems cannot open folders
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if not is_folder and error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until a folder and all that is in it is on the disk."""
    for name, _, files in os.walk(folder, topdown=False):
        for file in files:
            sync(Path(name, file))
        sync(Path(name))


@contextmanager
def explain_errors(path: Path, part: Path | None = None) -> Iterator[None]:
    """Turn errors such as that of a full disk into one sentence that names the output.

    path (Path): The file or folder that is written.
    part (Path | None): Its temporary name, which the user does not know.
    """
    try:
        yield
    except WriteError:
        raise
    except Exception as error:
        if _means_full(error):
            raise WriteError(
                f"{path}: cannot be written because the disk is full; make room and "
                "run the same command again"
            ) from error
        if isinstance(error, OSError) and error.filename in (str(part), part, path):
            raise WriteError(f"{path}: cannot be written ({error.strerror})") from error
        raise


def _means_full(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, comes from a full disk. Libraries
    that are not written in Python have no errno, only its text."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(os.strerror(number) in str(error) for number in FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def one_writer(path: Path) -> Iterator[None]:
    """Be the only process that writes an output while the block runs. Raise WriteError
    with a sentence about the other process if there is one. The system releases the
    lock when the process ends, even if it is killed. Temporary files that a killed
    process has left are deleted.

    path (Path): The file or folder. If it is a folder, it must exist.
    """
    lock = _lock_path(path)
    with explain_errors(path, lock):
        handle = _take_lock(path, lock)
    _held.add(handle)
    try:
        if path.is_dir():
            remove_parts(path)
            _remove_free_lock(_lock_beside(path))
        else:
            remove_parts(path.parent, path.name)
        yield
    finally:
        if handle in _held:  # not in a process that was forked in the block
            # On POSIX, delete the file before it is closed: after that, another process
            # may have locked it. On Windows, an open file cannot be deleted. If the
            # folder of the lock was replaced, the new one may have another lock.
            if os.name == "posix" and _is_file(handle, lock):
                lock.unlink(missing_ok=True)
            _held.discard(handle)
            os.close(handle)
            if os.name != "posix":
                with suppress(OSError):
                    lock.unlink(missing_ok=True)


def _lock_path(path: Path) -> Path:
    if path.is_dir():
        return path / LOCK
    return _lock_beside(path)


def _lock_beside(path: Path) -> Path:
    return path.with_name(f".{_shorten(path.name)}{LOCK}")


def _is_file(handle: int, path: Path) -> bool:
    """Return whether an open file is the one that has a name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _is_locked(lock: Path) -> bool:
    """Return whether another process, or this one, holds a lock."""
    try:
        handle = _open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    except OSError:  # a file system without locks: be careful
        return True
    finally:
        os.close(handle)


def _remove_free_lock(lock: Path) -> None:
    """Delete the lock of a process that was killed just after it had made a folder. The
    lock of a folder that exists is in the folder."""
    with suppress(OSError):
        handle = _open(lock, os.O_RDWR)
        try:
            if _try_lock(handle):
                lock.unlink()
        finally:
            os.close(handle)


def _take_lock(path: Path, lock: Path) -> int:
    """Open the lock file, lock it, and write into it who holds it."""
    while True:
        handle = _open(lock, os.O_RDWR | os.O_CREAT)
        try:
            free = _try_lock(handle)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                os.close(handle)
                raise
            warnings.warn(
                f"{path.parent}: this file system has no locks; do not write to it "
                "with two commands at the same time",
                stacklevel=4,
            )
            return handle
        if not free:
            holder = _describe_holder(handle)
            os.close(handle)
            raise WriteError(
                f"{path}: {holder} is writing it; wait for it to end, or choose "
                "another output"
            )
        # The process that held the lock before may just have deleted the file.
        if _is_file(handle, lock):
            break
        os.close(handle)
    facts = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now().astimezone().isoformat(" ", "seconds"),
    }
    with suppress(OSError):  # on a full disk, others are not told who holds the lock
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(facts).encode())
    return handle


def _describe_holder(handle: int) -> str:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        found = json.loads(os.read(handle, 1000))
        return f"process {found['pid']} on {found['host']}, since {found['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # it has not written its name yet


def _try_lock(handle: int) -> bool:
    """Lock an open file; return False if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _drop_locks() -> None:
    """Close the locks in a forked process, which would otherwise hold them even after
    its parent has released them."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_locks)
