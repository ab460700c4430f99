import errno
import os
import signal
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers.full_disk import full_disk

from spacy_elmo import files
from spacy_elmo.bilm.formats.tensors import save_arrays
from spacy_elmo.files import (
    WriteError,
    one_writer,
    part_path,
    replace_folder,
    restore_folder,
    write_atomically,
    write_folder_atomically,
)

HOLD = """
import os, sys
from pathlib import Path
from spacy_elmo.files import one_writer
with one_writer(Path(sys.argv[1])):
    os.write(1, b"held\\n")  # in one piece, also where two processes write
    sys.stdin.read()
"""


def hold_lock(path):
    """Start a process that holds the lock of a path."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_by_a_complete_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    seen = []

    def write(part):
        part.write_text("new")
        seen.append(path.read_text())

    write_atomically(path, write)
    assert (
        seen == ["old"] and path.read_text() == "new" and names(tmp_path) == [path.name]
    )


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, lambda part: part.write_text(str(1 / 0)))
    assert path.read_text() == "old" and names(tmp_path) == [path.name]


@pytest.mark.parametrize("umask, mode", [(0o077, 0o600), (0o022, 0o644)])
def test_files_have_the_mode_that_the_user_wants(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "a", lambda part: part.write_text("text"))
        tensors = {"a": np.zeros(2)}
        write_atomically(tmp_path / "b", lambda part: save_arrays(tensors, part))
        write_folder_atomically(tmp_path / "c", lambda part: (part / "d").touch())
    finally:
        os.umask(before)
    for name in ("a", "b", "c/d"):
        assert (tmp_path / name).stat().st_mode & 0o777 == mode, name


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "a.part").symlink_to(victim)
    monkeypatch.setattr(files.secrets, "token_hex", lambda n: "00" * n)
    for name in (f"a.{'00' * 8}.part", ".a.spacy-elmo-lock"):
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(WriteError, match=r"a: cannot be written \(File exists\)"):
        write_atomically(tmp_path / "a", lambda part: part.write_text("text"))
    with pytest.raises(WriteError, match="a: cannot be written"):
        with one_writer(tmp_path / "a"):
            pass
    assert victim.read_text() == "mine" and not (tmp_path / "a").exists()


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    sync, replace = os.fsync, os.replace

    def record_sync(handle):
        calls.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name.split(".")[0])
        sync(handle)

    def record_replace(old, new):
        calls.append("rename")
        replace(old, new)

    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux tells which file a handle belongs to")
    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_replace)
    write_atomically(tmp_path / "a", lambda part: part.write_text("text"))
    assert calls == ["a", "rename", tmp_path.name]
    calls.clear()
    write_folder_atomically(tmp_path / "b", lambda part: (part / "c").touch())
    assert calls == ["c", "b", "rename", tmp_path.name]


def test_a_full_disk_is_one_sentence(tmp_path):
    path = tmp_path / "a"
    tensors = {"a": np.zeros(100_000)}
    array = np.zeros(100_000)
    writers = {
        "python": lambda part: part.write_bytes(bytes(array)),
        "safetensors": lambda part: save_arrays(tensors, part),
    }
    for write in writers.values():
        with full_disk(10_000), pytest.raises(WriteError) as error:
            write_atomically(path, write)
        assert str(error.value) == (
            f"{path}: cannot be written because the disk is full; make room and run "
            "the same command again"
        )
    with full_disk(10_000), pytest.raises(WriteError, match="the disk is full"):
        write_folder_atomically(path, lambda part: writers["python"](part / "x"))
    assert names(tmp_path) == []


def test_an_output_in_a_missing_folder_is_one_sentence(tmp_path):
    path = tmp_path / "missing" / "a"
    with pytest.raises(WriteError, match=r"missing/a: cannot be written \(No such"):
        write_atomically(path, lambda part: part.write_text("text"))


def test_an_interrupted_replacement_is_repaired(tmp_path, monkeypatch):
    target, part = tmp_path / "model", tmp_path / "part"
    for folder in (target, part):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    replace = os.replace

    def fail(old, new):
        if old == part:
            raise KeyboardInterrupt
        replace(old, new)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(part, target)
    assert not target.exists()
    monkeypatch.undo()
    restore_folder(target)
    assert (target / "name").read_text() == "model"
    replace_folder(part, target)
    assert (target / "name").read_text() == "part" and names(tmp_path) == ["model"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_the_second_writer_is_told_who_holds_the_lock(tmp_path, is_folder):
    path = tmp_path / "output"
    if is_folder:
        path.mkdir()
    before = sorted(tmp_path.rglob("*"))
    holder = hold_lock(path)
    with pytest.raises(WriteError) as error:
        with one_writer(path):
            pytest.fail("two writers")
    assert str(error.value).startswith(f"{path}: process {holder.pid} on ")
    assert str(error.value).endswith("wait for it to end, or choose another output")
    holder.communicate()
    with one_writer(path):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_a_killed_writer_leaves_no_lock(tmp_path):
    path = tmp_path / "output"
    holder = hold_lock(path)
    (tmp_path / f"output.{'1f' * 8}.part").touch()  # of the killed process
    (tmp_path / "output.mine.part").touch()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with one_writer(path):
        assert "output.mine.part" in names(tmp_path) and len(names(tmp_path)) == 2
    assert names(tmp_path) == ["output.mine.part"]


def test_a_writer_killed_after_making_its_folder_leaves_no_lock(tmp_path):
    output = tmp_path / "out"
    lock = tmp_path / ".out.spacy-elmo-lock"
    with one_writer(output):
        output.mkdir()
        content = lock.read_bytes()
        with one_writer(output):
            assert lock.exists()  # it is held
    lock.write_bytes(content)
    with one_writer(output):
        assert not lock.exists()
    assert list(tmp_path.rglob("*")) == [output]


LONG = "x" * 50  # as much of a name as temporary names once had


@pytest.mark.parametrize("name", ["vectors.hdf5", f"{LONG}-train.hdf5"])
def test_temporary_files_of_another_writer_stay(tmp_path, name):
    path = tmp_path / name
    part = part_path(path)
    part.touch()
    holder = hold_lock(path)
    part.touch()
    with one_writer(tmp_path):
        assert part.exists()
    with one_writer(tmp_path / f"{LONG}-test.hdf5"):
        assert part.exists()
    holder.communicate()
    with one_writer(tmp_path):
        assert not part.exists()


@pytest.mark.parametrize("name", ["index", f"{LONG}-index"])
def test_temporary_folders_of_another_writer_stay(tmp_path, name):
    path = tmp_path / name
    path.mkdir()
    holder = hold_lock(path)
    part = part_path(path)
    part.mkdir()
    with one_writer(tmp_path):
        assert part.exists()
    holder.communicate()
    with one_writer(tmp_path):
        assert not part.exists()


def test_the_lock_in_a_new_folder_is_not_that_of_the_old_one(tmp_path):
    path = tmp_path / "output"
    path.mkdir()
    with one_writer(path):
        write_folder_atomically(path, lambda part: (part / "a").touch())
        holder = hold_lock(path)
    with pytest.raises(WriteError, match=f"process {holder.pid} on"):
        with one_writer(path):
            pytest.fail("two writers")
    holder.communicate()


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    def write_a(folder, text):
        (folder / "a").write_text(text)

    disk, link = tmp_path / "disk", tmp_path / "link"
    disk.mkdir()
    link.symlink_to(disk / "output")
    for text in ("first", "second"):  # at first, the link leads nowhere
        write_folder_atomically(link, partial(write_a, text=text))
        assert link.is_symlink() and (disk / "output" / "a").read_text() == text
        assert names(tmp_path) == ["disk", "link"] and names(disk) == ["output"]
    os.replace(disk / "output", disk / "output.spacy-elmo-old")  # as if killed here
    restore_folder(link)
    assert (link / "a").read_text() == "second" and names(disk) == ["output"]


def test_a_forked_process_does_not_keep_the_lock(tmp_path):
    """Kill a process that holds the lock, while one that it has forked goes on."""
    path = tmp_path / "output"
    code = HOLD.replace("    os.write(", "    os.fork()\n    os.write(")
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [holder.stdout.readline() for _ in range(2)] == ["held\n"] * 2
    holder.kill()
    holder.wait()
    with one_writer(path):
        pass
    holder.stdin.close()  # which ends the forked one
    assert holder.stdout.read() == ""


def test_a_file_system_without_locks_is_said_once(tmp_path, monkeypatch):
    import fcntl

    def fail(handle, flags):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(2):
            with one_writer(tmp_path / "output"):
                pass
    assert [str(warning.message).split(": ")[1] for warning in found] == [
        "this file system has no locks; do not write to it with two commands at the "
        "same time"
    ]
