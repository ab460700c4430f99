import os
import random
from itertools import accumulate
from pathlib import Path

import pytest

from spacy_elmo.fingerprints import (
    checksum_bytes,
    checksum_file,
    fingerprint_path,
    has_checksum,
)

SIZES = [0, 1, 8191, 8192, 2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20 + 12_345]


@pytest.mark.parametrize("size", SIZES)
def test_files_and_bytes_have_the_same_checksum(tmp_path, size):
    data = random.Random(size).randbytes(size)
    (tmp_path / "a").write_bytes(data)
    assert checksum_bytes(data) == checksum_file(tmp_path / "a")
    assert has_checksum(data, checksum_bytes(data))
    assert has_checksum(tmp_path / "a", checksum_bytes(memoryview(data)))


def test_the_checksum_does_not_change_between_versions():
    data = bytes(range(256)) * 5000
    assert checksum_bytes(data) == "sums-crc32:1280000:502ce960"
    assert not has_checksum(data, "other:1280000:00000000")
    assert not has_checksum(data, None)


def test_damage_changes_the_checksum():
    choose = random.Random(0)
    data = choose.randbytes(2 * 2**20 + 4000)
    checksum = checksum_bytes(data)
    for _ in range(100):
        at = choose.randrange(len(data))
        size = choose.choice([1, 4096, 65536])
        flipped = bytes([data[at] ^ (1 << choose.randrange(8))])
        block = data[at : at + size]
        for damaged in (
            data[:at] + flipped + data[at + 1 :],
            data[:at] + bytes(len(block)) + data[at + size :],
            data[:at],
            data + bytes(size),
        ):
            assert damaged == data or not has_checksum(damaged, checksum)


@pytest.mark.parametrize("size", [4096, 8192, 2**20])
def test_blocks_that_change_places_change_the_checksum(size):
    data = random.Random(0).randbytes(4 * 2**20)
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    blocks[0], blocks[2] = blocks[2], blocks[0]
    assert not has_checksum(b"".join(blocks), checksum_bytes(data))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_or_device_has_no_checksum(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert not has_checksum(path, checksum_bytes(b""))


@pytest.mark.parametrize("sizes", [(0, 1), (2**20 - 1, 2, 2**20), (3, 2**21 + 8, 7)])
def test_pieces_have_the_checksum_of_the_whole(sizes):
    data = random.Random(3).randbytes(sum(sizes))
    ends = accumulate(sizes)
    pieces = [data[end - size : end] for end, size in zip(ends, sizes)]
    assert checksum_bytes(*pieces) == checksum_bytes(data)


def test_folders_may_be_nested_deeply(tmp_path, deep_folder):
    (deep_folder / "a").write_text("one")
    before = fingerprint_path(tmp_path)
    (deep_folder / "a").write_text("two")
    assert fingerprint_path(tmp_path) != before


def test_names_in_other_encodings_have_a_fingerprint(tmp_path):
    found = set()
    for name in (b"a", b"\xe9", b"\xe8"):
        folder = tmp_path / name.hex()
        folder.mkdir()
        try:
            (folder / os.fsdecode(name)).write_bytes(b"same")
        except OSError:
            pytest.skip("this file system has only names in Unicode")
        found.add(fingerprint_path(folder))
    assert len(found) == 3
