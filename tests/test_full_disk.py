"""Write everything to a real disk that is full: one sentence, and nothing is lost. When
there is room, the same command gives the same bytes."""

import os
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from helpers import report_samples
from helpers.command import call, text
from helpers.comparing import make_command, save_data
from helpers.layer_caches import key, layers, make_cache
from helpers.pipelines import save_bilm
from helpers.pretraining import run, write_config, write_text

import spacy_elmo.report

pytestmark = pytest.mark.slow
SHARES = [0.0, 0.4, 0.9]


class Disk:
    """A file system of 20 MB.

    path (Path): Where it is mounted.
    """

    def __init__(self, path):
        self.path = path
        self.ballast = path / "ballast"

    def fill(self, n_bytes):
        """Leave no more room than this."""
        free = os.statvfs(self.path)
        self.ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - n_bytes))

    def make_room(self):
        self.ballast.unlink()


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here ({error})")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here ({done.stderr.strip()})")
    yield Disk(path)
    # Lazily, since memory maps of its files may still be open.
    subprocess.run(["umount", "-l", path], check=True)


def measure(path):
    """Return how much room a file or folder takes."""
    paths = [path, *path.rglob("*")]
    return sum(each.stat().st_blocks * 512 for each in paths)


def assert_full(done, output):
    """Check that a command has failed with one sentence about an output."""
    output_text = getattr(done, "stderr", "") + getattr(done, "stdout", "")
    said = " ".join(output_text.split())
    code = done.returncode if hasattr(done, "returncode") else done.exit_code
    assert code == 1, said
    assert "cannot be written because the disk is full; make room and run" in said
    assert output.name in said and "Traceback" not in said


def contents(path):
    """Return the bytes of a file, or of all files in a folder that matter."""
    if path.is_file():
        return path.read_bytes()
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize("share", [0.0, 0.4, 1.4])  # 1.4 is enough for the parts
@pytest.mark.parametrize("ending", ["hdf5", "parquet"])
def test_embed(disk, tmp_path, ending, share):
    save_bilm(tmp_path / "bilm")
    words = write_text(tmp_path / "a.txt")
    whole, out = tmp_path / f"whole.{ending}", disk.path / f"out.{ending}"
    assert call("embed", tmp_path / "bilm", words, whole).exit_code == 0
    disk.fill(int(share * measure(whole)))
    # In a process of its own: the library of HDF5 may crash when that ends.
    start = run if ending == "hdf5" else call
    assert_full(start("embed", tmp_path / "bilm", words, out), out)
    assert not out.exists()
    disk.make_room()
    assert call("embed", tmp_path / "bilm", words, out).exit_code == 0
    assert contents(out) == contents(whole)
    assert os.listdir(disk.path) == [out.name]


@pytest.fixture
def config(tmp_path):
    words = write_text(tmp_path / "a.txt", n_documents=300)
    return write_config(tmp_path / "config.cfg", words)


@pytest.mark.parametrize("share", SHARES)
def test_corpus(disk, tmp_path, config, share):
    def pretrain(folder):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        options = ["--output", tmp_path / "run", "--training.max_steps", 1]
        return call("pretrain", config, *options, "--corpus.folder", folder)

    whole, out = tmp_path / "whole", disk.path / "corpus"
    assert pretrain(whole).exit_code == 0
    disk.fill(int(share * measure(whole)))
    assert_full(pretrain(out), out)
    assert not list(out.iterdir())
    disk.make_room()
    assert pretrain(out).exit_code == 0
    assert contents(out) == contents(whole)


@pytest.mark.parametrize("share", SHARES)
def test_checkpoints(disk, tmp_path, config, share):
    def pretrain(output, *more):
        options = ["--output", output, "--corpus.folder", tmp_path / "corpus", *more]
        return call("pretrain", config, *options)

    whole, out = tmp_path / "whole", disk.path / "run"
    assert pretrain(whole).exit_code == 0
    disk.fill(int(share * measure(whole)))
    assert_full(pretrain(out), out)
    disk.make_room()
    done = pretrain(out, "--resume")
    assert done.exit_code == 0, text(done)
    for name in ("model-best", "model-last"):
        found, expected = contents(out / name), contents(whole / name)
        for file in ("weights.safetensors", "softmax.safetensors", "vocab.txt"):
            assert found[file] == expected[file]
    assert contents(out).keys() == contents(whole).keys()


@pytest.mark.parametrize("share", SHARES)
def test_report(disk, tmp_path, monkeypatch, share):
    monkeypatch.setattr(spacy_elmo.report, "load_vega", lambda: "1;" * 40_000)
    results = report_samples.write_all(tmp_path / "results")
    whole, out = tmp_path / "whole.html", disk.path / "report.html"
    assert call("report", results, "--output", whole).exit_code == 0
    disk.fill(int(share * measure(whole)))
    assert_full(call("report", results, "--output", out), out)
    assert not out.exists()
    disk.make_room()
    assert call("report", results, "--output", out).exit_code == 0
    assert contents(out) == contents(whole)


def test_compare(disk, tmp_path):
    data = save_data(tmp_path)
    out = disk.path / "output"
    options = ["--variants", "baseline", "--seeds", 1, "--keep", "none"]
    command = [*make_command(data, out), *options]
    disk.fill(50_000)  # too little for a pipeline, which a worker process writes
    assert_full(call(*command), out)
    disk.make_room()
    assert call(*command).exit_code == 0
    assert {path.name for path in out.iterdir()} >= {"compare.json", "compare.md"}


@pytest.mark.parametrize("n_pages", [0, 1, 2, 3])
def test_cache(disk, n_pages):
    folder = disk.path / "cache"
    disk.fill(n_pages * 4096)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cache = make_cache(folder=folder, numbers=range(1, 12))
    (message,) = (str(warning.message) for warning in said)
    assert message.startswith("elmo: the layer cache cannot be written ([Errno 28]")

    def check(cache, numbers):
        for number in numbers:
            found = cache.get(key(number))
            assert np.array_equal(found, layers(number).astype("float32"))

    known = [number for number in range(12) if cache.get(key(number)) is not None]
    check(cache, known)
    disk.make_room()
    cache = make_cache(folder=folder)
    check(cache, known)
    for number in range(1, 12):
        if cache.get(key(number)) is None:
            cache.put(key(number), layers(number).astype("float32"))
    check(make_cache(folder=folder), range(1, 12))
