"""Compressed HDF5 arrays: loaded like plain ones, and refused before they take memory
if little data declares much."""

import io
import zlib

import h5py
import numpy as np
import pytest
from helpers.hdf5_models import VOCAB, small_model, write_pair
from helpers.models import refusal

from spacy_elmo.bilm import load_data

resource = pytest.importorskip("resource")
KEY = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"  # (6, 16)
MiB = 2**20


@pytest.fixture
def folder(tmp_path):
    return write_pair(tmp_path / "model", *small_model(), vocab=VOCAB)


@pytest.fixture
def little_memory():
    """Let a test take at most 500 MB more than the process has."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 500 * MiB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def store_again(path, **arguments):
    """Create each array anew, with other arguments."""
    with h5py.File(path, "r+") as file:
        names = []
        file.visit(names.append)
        for name in names:
            if isinstance(file[name], h5py.Dataset):
                array = file[name][()]
                del file[name]
                file.create_dataset(name, data=array, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "compression_opts": 9, "shuffle": True},
        {"compression": "lzf"},
        {"compression": "lzf", "shuffle": True, "fletcher32": True},
        {"compression": "gzip", "fletcher32": True, "chunks": True},
        {"shuffle": True},
        {"compression": "gzip", "dtype": "f8"},
    ],
)
@pytest.mark.parametrize("zeros", [False, True])
def test_compressed_weights_are_loaded(arguments, zeros, tmp_path):
    options, arrays = small_model()
    if zeros:
        arrays = {name: np.zeros_like(array) for name, array in arrays.items()}
    expected = load_data(write_pair(tmp_path / "plain", options, arrays, vocab=VOCAB))
    folder = write_pair(tmp_path / "model", options, arrays, vocab=VOCAB)
    store_again(folder / "weights.hdf5", **arguments)
    found = load_data(folder)
    assert found.vocab == expected.vocab
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)


def create(folder, key, **arguments):
    """Replace an array, and return the sentence that refuses it."""
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        shape = file[key].shape
        del file[key]
        file.create_dataset(key, shape, "f4", **arguments)
    name, sentence = refusal(folder)
    assert name == str(folder / "weights.hdf5")
    return sentence


@pytest.mark.parametrize("compression", ["gzip", "lzf"])
def test_compressed_arrays_without_data_are_refused(compression, folder):
    sentence = create(folder, KEY, chunks=(3, 16), compression=compression)
    assert f"'{KEY}' to be in 0 chunks; expected 2" in sentence


@pytest.mark.parametrize("arguments", [{}, {"compression": "gzip"}])
def test_arrays_that_lack_a_chunk_are_refused(arguments, folder):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        whole = file[KEY][()]
        del file[KEY]
        array = file.create_dataset(KEY, (6, 16), "f4", chunks=(4, 9), **arguments)
        array[:, 9:], array[4:] = whole[:, 9:], whole[4:]
        # The chunks at the edges are larger than their part of the array.
        assert arguments or array.id.get_storage_size() > whole.nbytes
    assert f"'{KEY}' to be in 3 chunks; expected 4" in refusal(folder)[1]


def test_other_filters_are_refused(folder):
    sentence = create(folder, KEY, scaleoffset=2, data=np.ones((6, 16)))
    assert "scaleoffset); expected gzip or lzf" in sentence


def test_chunks_larger_than_their_array_are_refused(folder, little_memory):
    arguments = {"maxshape": (None, None), "chunks": (20_000, 20_000)}
    sentence = create(folder, KEY, compression="gzip", **arguments)
    assert "chunks of 1,600,000,000 bytes" in sentence


def lzf_zeros(n_bytes):
    """Return bytes from which lzf makes that many zeros: one, and copies of it."""
    return b"\x00\x00" + b"\xe0\xff\x00" * (n_bytes // 264)


@pytest.mark.parametrize(
    ("compression", "pack"),
    [("gzip", lambda n: zlib.compress(bytes(n), 9)), ("lzf", lzf_zeros)],
)
def test_chunks_that_hold_more_than_they_declare_are_refused(compression, pack, folder):
    data = np.zeros((6, 16), "f4")
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file[KEY]
        array = file.create_dataset(
            KEY, data=data, chunks=(6, 16), compression=compression
        )
        array.id.write_direct_chunk((0, 0), pack(384))
    load_data(folder)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file[KEY].id.write_direct_chunk((0, 0), pack(10_000))
    assert "hold more than 384 bytes" in refusal(folder)[1]


def test_many_zeros_in_a_small_file_are_refused(tmp_path, little_memory):
    options, arrays = small_model(n_words=None)
    options["lstm"]["dim"] = 10 * MiB
    folder = write_pair(tmp_path, options, arrays)
    block = zlib.compress(bytes(40 * MiB), 9)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        for name in list(arrays):
            *_, kind = name.split("/")
            if kind in ("W_0", "B", "W_P_0"):
                shape = tuple(40 * MiB if n == 16 else n for n in arrays[name].shape)
                shape = (10 * MiB, 3) if kind == "W_P_0" else shape
                del file[name]
                chunk = (10 * MiB, 1) if kind == "W_P_0" else (1, 10 * MiB)
                array = file.create_dataset(
                    name, shape, "f4", chunks=chunk[-len(shape) :], compression="gzip"
                )
                for place in array.iter_chunks():
                    start = tuple(part.start for part in place)
                    array.id.write_direct_chunk(start, block)
    assert (folder / "weights.hdf5").stat().st_size < 10 * MiB
    assert "more than the file has" in refusal(folder)[1]


def test_cut_off_chunks_are_refused(folder):
    store_again(folder / "weights.hdf5", compression="gzip")
    path = folder / "weights.hdf5"
    whole = path.read_bytes()
    with h5py.File(io.BytesIO(whole), "r") as file:
        start = file[KEY].id.get_chunk_info(0).byte_offset
    path.write_bytes(whole[: start + 3] + bytes(20) + whole[start + 23 :])
    assert "no complete HDF5 file" in refusal(folder)[1]
