"""Small files that declare large sizes, and paths that are not files."""

import json
import os
import subprocess
import sys
import tracemalloc
import zipfile

import h5py
import numpy as np
import pytest
import spacy
import torch
from helpers.hdf5_models import VOCAB, small_model, write_pair
from helpers.manylangs_models import EMBEDDER, ENCODER, write_model
from helpers.models import refusal
from helpers.native_models import drop_checksums, make_bilm
from safetensors.numpy import load_file, save_file

from spacy_elmo.bilm import load_bilm

HUGE = 10**9


@pytest.fixture
def native(tmp_path):
    make_bilm("chars-cnn-words").save(tmp_path / "model")
    drop_checksums(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def hdf5(tmp_path):
    return write_pair(tmp_path / "model", *small_model(), vocab=VOCAB)


@pytest.fixture
def manylangs(tmp_path):
    return write_model(tmp_path / "model", token__word_dim=5)


def cheap_refusal(folder):
    """Return the file that a refusal names, after checking that it needed little
    memory."""
    tracemalloc.start()
    try:
        file, _ = refusal(folder)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()
    return file


def change(path, section, key, value):
    data = json.loads(path.read_text())
    data[section][key] = value
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("name", ["weights", "softmax"])
def test_weights_that_no_model_needs_are_not_read(native, name):
    path = native / f"{name}.safetensors"
    length = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + length])
    end = max(part["data_offsets"][1] for key, part in header.items() if key[0] != "_")
    more = {"dtype": "I8", "shape": [HUGE], "data_offsets": [end, end + HUGE]}
    text = json.dumps({**header, "more": more}).encode()
    data = path.read_bytes()[8 + length :]
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    os.truncate(path, 8 + len(text) + end + HUGE)  # most of it takes no disk space
    assert cheap_refusal(native) == str(path)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("lstm", "n_layers", HUGE),
        ("lstm", "dim", HUGE),
        ("lstm", "projection_dim", HUGE),
        ("encoder", "n_highway", HUGE),
        ("encoder", "char_dim", HUGE),
        ("encoder", "filters", [[1, HUGE]]),
        ("encoder", "word_dim", HUGE),
        ("softmax", "n_words", HUGE),
    ],
)
def test_huge_sizes_in_a_config_cost_nothing(section, key, value, native):
    change(native / "config.json", section, key, value)
    assert cheap_refusal(native).startswith(str(native))


@pytest.mark.parametrize("key", ["n_layers", "dim", "projection_dim"])
def test_huge_sizes_in_options_cost_nothing(key, hdf5):
    change(hdf5 / "options.json", "lstm", key, HUGE)
    assert cheap_refusal(hdf5) == str(hdf5 / "weights.hdf5")


def test_many_highways_in_options_cost_nothing(hdf5):
    change(hdf5 / "options.json", "char_cnn", "n_highway", HUGE)
    assert cheap_refusal(hdf5) == str(hdf5 / "weights.hdf5")


@pytest.mark.parametrize("shape", [(1, 1), (3,), (261, 3), (1, 3, 1), ()])
def test_scales_of_another_shape_are_refused(shape, tmp_path):
    make_bilm("bytes").save(tmp_path, dtype="int8")
    drop_checksums(tmp_path)
    path = tmp_path / "weights.safetensors"
    name = "encoder.cnn.embedding.scales"
    save_file({**load_file(path), name: np.ones(shape, np.float32)}, path)
    file, sentence = refusal(tmp_path)
    assert file == str(path)
    assert f"'{name}'" in sentence


def test_8_bits_without_scales_are_refused(tmp_path):
    make_bilm("bytes").save(tmp_path, dtype="int8")
    drop_checksums(tmp_path)
    path = tmp_path / "weights.safetensors"
    arrays = load_file(path)
    del arrays["encoder.cnn.embedding.scales"]
    save_file(arrays, path)
    assert "encoder.cnn.embedding.scales" in refusal(tmp_path)[1]


# HDF5

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/"


@pytest.fixture
def replace(hdf5):
    """Return a function that creates another array in the place of one."""

    def run(key, **arguments):
        with h5py.File(hdf5 / "weights.hdf5", "a") as file:
            shape = file[key].shape
            del file[key]
            file.create_dataset(key, shape, "f4", **arguments)

    return run


def test_arrays_without_data_are_refused(replace, hdf5):
    replace("CNN_proj/W_proj", chunks=(1, 1))
    assert refusal(hdf5)[0] == str(hdf5 / "weights.hdf5")


def test_large_arrays_without_data_cost_nothing(hdf5):
    change(hdf5 / "options.json", "lstm", "dim", 10**8)
    with h5py.File(hdf5 / "weights.hdf5", "a") as file:
        for direction in (0, 1):
            for layer in (0, 1):
                cell = CELL.replace("RNN_0", f"RNN_{direction}")
                cell = cell.replace("Cell0", f"Cell{layer}")
                shapes = {"W_0": (6, 4 * 10**8), "B": (4 * 10**8,)}
                for name, shape in {**shapes, "W_P_0": (10**8, 3)}.items():
                    del file[cell + name]
                    chunks = tuple(min(n, 1000) for n in shape)
                    file.create_dataset(cell + name, shape, "f4", chunks=chunks)
    assert cheap_refusal(hdf5) == str(hdf5 / "weights.hdf5")


def test_arrays_in_other_files_are_not_read(replace, hdf5, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(range(200)))
    replace("CNN_proj/W_proj", external=[(str(tmp_path / "secret"), 0, 60)])
    assert "another file" in refusal(hdf5)[1]


@pytest.mark.parametrize("key", ["CNN_proj/W_proj", "CNN_proj", "char_embed"])
@pytest.mark.parametrize("kind", ["external", "soft", "broken"])
def test_links_are_refused(kind, key, hdf5, tmp_path):
    other = write_pair(tmp_path / "other", *small_model()) / "weights.hdf5"
    links = {
        "external": h5py.ExternalLink(str(other), key),
        "soft": h5py.SoftLink("/CNN_proj/b_proj"),
        "broken": h5py.SoftLink("/nothing"),
    }
    with h5py.File(hdf5 / "weights.hdf5", "a") as file:
        del file[key]
        file[key] = links[kind]
    file, sentence = refusal(hdf5)
    assert file == str(hdf5 / "weights.hdf5")
    assert "link" in sentence


def test_virtual_arrays_are_refused(hdf5, tmp_path):
    other = write_pair(tmp_path / "other", *small_model()) / "weights.hdf5"
    with h5py.File(hdf5 / "weights.hdf5", "a") as file:
        shape = file["CNN_proj/W_proj"].shape
        del file["CNN_proj/W_proj"]
        layout = h5py.VirtualLayout(shape, "f4")
        layout[...] = h5py.VirtualSource(str(other), "CNN_proj/W_proj", shape)
        file.create_virtual_dataset("CNN_proj/W_proj", layout)
    assert "another file" in refusal(hdf5)[1]


# ELMoForManyLangs


def test_a_compressed_state_dict_is_refused(manylangs):
    path = manylangs / ENCODER
    state = torch.load(path)
    name = "forward_layer_0.input_linearity.weight"
    torch.save({**state, name: torch.zeros(10**6)}, path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, contents in entries.items():
            file.writestr(name, contents)
    assert path.stat().st_size < 10**5
    assert cheap_refusal(manylangs) == str(path)


STRANGE = {
    "expanded": lambda: torch.zeros(1).expand(10**9),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
    "sparse": lambda: torch.eye(4).to_sparse(),
    "csr": lambda: torch.eye(4).to_sparse_csr(),
    "meta": lambda: torch.empty(4, device="meta"),
    "whole": lambda: torch.ones(4, dtype=torch.int64),
    "complex": lambda: torch.ones(4, dtype=torch.complex64),
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.filterwarnings("ignore")  # torch warns of such tensors
def test_tensors_without_plain_numbers_are_refused(kind, manylangs):
    path = manylangs / EMBEDDER
    torch.save({**torch.load(path), "projection.bias": STRANGE[kind]()}, path)
    assert cheap_refusal(manylangs) == str(path)


# Not files

PATHS = [
    ("native", "config.json"),
    ("native", "weights.safetensors"),
    ("native", "softmax.safetensors"),
    ("native", "vocab.txt"),
    ("native", "lexicon.json"),
    ("hdf5", "options.json"),
    ("hdf5", "weights.hdf5"),
    ("hdf5", "vocab.txt"),
    ("manylangs", "config.json"),
    ("manylangs", "char.dic"),
    ("manylangs", ENCODER),
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize(("kind", "name"), PATHS)
def test_pipes_devices_and_folders_are_refused(kind, name, request):
    path = request.getfixturevalue(kind) / name
    path.unlink()
    os.mkfifo(path)
    assert refusal(path.parent)[0].startswith(str(path.parent))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert cheap_refusal(path.parent).startswith(str(path.parent))
    path.unlink()
    path.mkdir()
    assert refusal(path.parent)[0].startswith(str(path.parent))


def test_links_to_files_are_followed(native, tmp_path):
    for path in list(native.iterdir()):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
    assert load_bilm(native).vocab


@pytest.mark.parametrize(
    "contents",
    [b"[" * 10**6, b'{"a":' * 10**5, b" " * (2**22 + 1), b"9" * 10**6],
    ids=["lists", "objects", "large", "digits"],
)
@pytest.mark.parametrize(
    "kind, name", [("native", "config.json"), ("hdf5", "options.json")]
)
def test_json_without_end_is_refused(kind, name, contents, request):
    path = request.getfixturevalue(kind) / name
    path.write_bytes(contents)
    assert refusal(path.parent)[0] == str(path)


# What people give by mistake


def test_the_output_folder_of_pretrain_means_its_best_model(tmp_path):
    bilm = make_bilm("bytes")
    bilm.save(tmp_path / "model-best")
    make_bilm("bytes", seed=1).save(tmp_path / "model-last")
    found = load_bilm(tmp_path)
    assert torch.equal(found.weight, bilm.weight)


def test_a_pipeline_in_the_place_of_a_bilm_is_explained(tmp_path):
    nlp = spacy.blank("xx")
    make_bilm("bytes").save(tmp_path / "bilm")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", name="layers", config={"bilm": str(tmp_path / "bilm")})
    nlp.to_disk(tmp_path / "pipeline")
    file, sentence = refusal(tmp_path / "pipeline")
    assert file == str(tmp_path / "pipeline")
    assert "nlp.add_pipe('layers', source=spacy.load(" in sentence
    nlp.remove_pipe("layers")
    nlp.to_disk(tmp_path / "other")
    assert "without 'elmo'" in refusal(tmp_path / "other")[1]


@pytest.mark.parametrize("device", ["cuda:99", "nonsense", "cuda:x"])
def test_a_device_that_is_not_there_is_named(device, native):
    with pytest.raises(ValueError, match=f"^device is '{device}'[^\n]*$"):
        load_bilm(native, device=device)


def test_manylangs_without_torch_names_the_extra(manylangs):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from spacy_elmo.bilm.formats.sources import load_data\n"
        "load_data(sys.argv[1])"
    )
    command = [sys.executable, "-c", code, str(manylangs)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "pip install 'spacy-elmo[train]'" in done.stderr.splitlines()[-1]
