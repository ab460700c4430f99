"""Test that with the layer cache, training encodes each doc once and gives the same
results."""

import gc
import io
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from helpers.layer_caches import found, key, layers, make_cache
from helpers.tasks import (
    elmo_alone,
    make_examples,
    make_nlp,
    save_tiny,
    with_elmo,
)
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_elmo.pipeline.layer_cache import INDEX, LayerCache


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilm"))


@pytest.fixture
def caches(monkeypatch):
    """Return a list to which each cache that the test creates is added."""
    made = []
    original = LayerCache.__init__

    def init(self, *args, **options):
        original(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(LayerCache, "__init__", init)
    return made


# The cache alone


@pytest.mark.parametrize("memory, n_on_disk", [(0, 4), (144 * 4, 2), (2**20, 0)])
def test_layers_are_found_in_memory_and_on_disk(memory, n_on_disk):
    cache = make_cache(memory, numbers=[0, 1, 2, 3, 4])
    # Doc 0 has no tokens and takes no memory. With a limit of 144 * 4 bytes, docs 1 and
    # 2 stay in memory, and docs 3 and 4 are written to disk.
    assert cache.n_on_disk == n_on_disk
    assert len(cache) == 5
    assert found(cache, range(7)) == found(cache, range(7)) == [0, 1, 2, 3, 4]


def test_layers_from_disk_are_kept_in_memory_if_they_fit(tmp_path):
    make_cache(folder=tmp_path, numbers=[1, 2])
    cache = make_cache(2**20, folder=tmp_path)
    assert cache.n_on_disk == 2
    assert found(cache) == [1, 2]
    for path in tmp_path.iterdir():
        path.unlink()
    assert found(cache) == [1, 2]


def test_a_temporary_folder_is_deleted_with_its_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cache = make_cache(numbers=[1])
    assert len(list(tmp_path.glob("*/*"))) == 2
    del cache
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_caches_can_share_a_folder(tmp_path):
    first = make_cache(folder=tmp_path)
    second = make_cache(folder=tmp_path)
    for cache, numbers in ((first, [1, 2]), (second, [2, 3])):
        for number in numbers:
            cache.put(key(number), layers(number).astype("float32"))
    # A cache does not see files that another one writes after the cache was created.
    assert found(first) == [1, 2] and found(second) == [2, 3]
    assert found(make_cache(folder=tmp_path)) == [1, 2, 3]


def change(path, change):
    path.write_bytes(bytes(change(bytearray(path.read_bytes()))))


def flip(data, position):
    data[position] ^= 0x10
    return data


SIZE = INDEX.itemsize
DAMAGES = {
    "index cut": ("index", lambda data: data[:-1], [1, 2]),
    "index empty": ("index", lambda data: b"", []),
    "index of 0xff bytes": ("index", lambda data: b"\xff" * len(data), []),
    "index with zeros after a key": (
        "index",
        lambda data: data[: SIZE + 16] + bytes(2 * SIZE - 16),
        [1],
    ),
    "index with a wrong offset": ("index", lambda data: flip(data, SIZE + 16), [1, 3]),
    "index with a wrong length": ("index", lambda data: flip(data, SIZE + 24), [1, 3]),
    "index with a huge length": ("index", lambda data: flip(data, SIZE + 30), [1, 3]),
    "negative length": (
        "index",
        lambda data: data[: SIZE + 24] + b"\xff" * 8 + data[SIZE + 32 :],
        [1, 3],
    ),
    "layers cut": ("layers", lambda data: data[:-1], [1, 2]),
    "layers empty": ("layers", lambda data: b"", []),
    "layers with a wrong bit": ("layers", lambda data: flip(data, 200), [1, 3]),
    "layers of zeros": ("layers", lambda data: bytes(len(data)), []),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_not_used(tmp_path, damage):
    suffix, function, left = DAMAGES[damage]
    make_cache(folder=tmp_path, numbers=[1, 2, 3])
    (path,) = tmp_path.glob(f"*.{suffix}")
    change(path, function)
    cache = make_cache(folder=tmp_path)
    assert found(cache) == left
    for number in {1, 2, 3}.difference(left):
        cache.put(key(number), layers(number).astype("float32"))
    assert found(cache) == [1, 2, 3]


@pytest.mark.parametrize("suffix", ["index", "layers"])
def test_a_deleted_file_is_no_error(tmp_path, suffix):
    cache = make_cache(folder=tmp_path, numbers=[1, 2])
    (path,) = tmp_path.glob(f"*.{suffix}")
    path.unlink()
    assert found(make_cache(folder=tmp_path)) == []
    assert found(cache) == ([1, 2] if suffix == "index" else [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("suffix", ["index", "layers"])
def test_a_pipe_is_not_read(tmp_path, suffix):
    make_cache(folder=tmp_path, numbers=[0, 1])
    (path,) = tmp_path.glob(f"*.{suffix}")
    path.unlink()
    os.mkfifo(path)
    assert found(make_cache(folder=tmp_path)) == []


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="layer cache cannot be written") as caught:
        cache = make_cache(2**20, folder=tmp_path / "file" / "cache", numbers=[1, 2])
    assert len(caught) == 1
    assert found(cache) == [1, 2]  # in memory


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_writes_files_of_its_own(tmp_path):
    cache = make_cache(folder=tmp_path, numbers=[1])
    child = os.fork()
    for number in [2, 3] if child else [4, 3]:
        cache.put(key(number), layers(number).astype("float32"))
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert found(make_cache(folder=tmp_path)) == [1, 2, 3, 4]
    assert len(list(tmp_path.glob("*.layers"))) == 2


# The cache in training

TASKS = {"tagger": with_elmo("both"), "senter": elmo_alone()}


def run(bilm, encoded=None, *, n_epochs=3, memory_mb=None, **config):
    """Train a pipeline for some epochs.

    Each batch is one doc, because rounding makes the layers of a doc depend slightly on
    the other docs in its batch.
    encoded (list[int]): The fixture `encoded`, which is cleared when training begins.
    RETURNS (tuple[Language, list]): The pipeline, and a list with the losses of all
        steps, the weights and a prediction. Equal lists mean equal results.
    """
    nlp, examples = make_nlp(bilm, TASKS, **config)
    if memory_mb is not None:
        nlp.get_pipe("elmo").storage.cache_memory_mb = memory_mb
    if encoded is not None:
        encoded.clear()
    optimizer = Adam(0.02)
    results = []
    for _ in range(n_epochs):
        random.shuffle(examples)
        for example in examples:
            results.append(nlp.update([example], sgd=optimizer, drop=0.1))
    for name in TASKS:
        results.append(nlp.get_pipe(name).model.to_bytes())
    results.append(nlp(make_examples(nlp)[0].text).to_json())
    return nlp, results


@pytest.fixture(scope="module")
def expected(bilm):
    return run(bilm, cache_layers="none")[1]


@pytest.mark.parametrize(
    "config, n_on_disk",
    [
        ({"cache_layers": "training"}, 0),
        ({"cache_memory_mb": 0}, 3),
        ({"cache_memory_mb": 0, "store_layers": "none"}, 3),
        ({"memory_mb": 2000 / 2**20}, 1),
    ],
)
def test_training_encodes_each_doc_once_with_the_same_results(
    bilm, expected, encoded, caches, config, n_on_disk
):
    _, results = run(bilm, encoded, **config)
    assert encoded == [1, 1, 1, 1]  # three docs, and the prediction at the end
    assert results == expected
    assert [cache.n_on_disk for cache in caches] == [n_on_disk]


def test_always_caches_predictions_too(bilm, expected, encoded):
    nlp, results = run(bilm, encoded, cache_layers="always")
    assert encoded == []  # initialize has already encoded all docs
    for mine, losses in zip(results[:9], expected):
        assert mine == pytest.approx(losses, rel=1e-4)
    assert results[-1] == expected[-1]
    nlp("something else")
    nlp("something else")
    assert encoded == [1]


def test_without_a_cache_every_epoch_encodes(bilm, expected, encoded, caches):
    _, results = run(bilm, encoded, cache_layers="none")
    assert encoded == [1] * 10
    assert caches == []
    assert results == expected


@pytest.mark.parametrize("cache_layers", ["training", "always"])
def test_a_bilm_that_learns_is_not_cached(bilm, encoded, caches, cache_layers):
    run(bilm, encoded, frozen=False, cache_layers=cache_layers)
    assert encoded == [1] * 10
    assert caches == []


def test_components_that_predict_in_training_use_the_cache(bilm, encoded):
    nlp, examples = make_nlp(bilm, TASKS)
    encoded.clear()
    for _ in range(3):
        nlp.update(examples, annotates=["elmo", "tagger"])
    assert encoded == [3]
    nlp(examples[0].text)
    assert encoded == [3, 1]


def test_a_full_disk_costs_one_warning(bilm, expected, encoded, monkeypatch):
    class FullDisk(io.BytesIO):
        name = "nowhere"

        def write(self, data):
            raise OSError(28, "No space left on device")

    def open_file(path, mode="r", *args, **options):
        if path.suffix == ".layers" and mode == "wb":
            return FullDisk()
        return original(path, mode, *args, **options)

    original = Path.open
    monkeypatch.setattr(Path, "open", open_file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, results = run(bilm, encoded, cache_memory_mb=0)
    (message,) = (str(warning.message) for warning in caught)
    assert message.startswith("elmo: the layer cache cannot be written ([Errno 28]")
    assert encoded == [1] * 10
    assert results == expected


# A folder for several runs


@pytest.mark.slow
def test_a_folder_serves_later_pipelines_of_the_same_weights(
    bilm, expected, encoded, tmp_path
):
    folder = {"cache_folder": str(tmp_path / "new" / "cache")}
    nlp, _ = run(bilm, n_epochs=1, **folder)
    _, results = run(bilm, encoded, **folder)
    assert encoded == [1]  # only the prediction at the end
    assert results == expected
    # A pipeline that was saved and loaded has the same weights, so it uses the cache.
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    loaded.get_pipe("elmo").storage.cache_folder = folder["cache_folder"]
    encoded.clear()
    loaded.update(make_examples(loaded), sgd=Adam(0.01))
    assert encoded == []
    # A biLM with other weights does not use these layers from the same folder.
    other = save_tiny(tmp_path / "other", seed=1)
    other_expected = run(other, cache_layers="none")[1]
    assert run(other, encoded, **folder)[1] == other_expected != expected
    assert encoded == [1, 1, 1, 1]


@pytest.mark.slow
def test_a_folder_serves_later_processes(bilm, encoded, tmp_path):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from helpers.tasks import elmo_alone, make_nlp
config = {{"cache_folder": {str(tmp_path)!r}}}
nlp, examples = make_nlp({bilm!r}, {{"tagger": elmo_alone()}}, **config)
nlp.update(examples)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run(bilm, encoded, cache_folder=str(tmp_path))
    assert encoded == [1]


@pytest.mark.parametrize("damage", ["negative length", "layers cut", "layers of zeros"])
def test_training_survives_a_damaged_folder(bilm, expected, tmp_path, damage):
    run(bilm, n_epochs=1, cache_folder=str(tmp_path))
    suffix, function, _ = DAMAGES[damage]
    (path,) = tmp_path.glob(f"*/*.{suffix}")
    change(path, function)
    assert run(bilm, cache_folder=str(tmp_path))[1] == expected


@pytest.mark.slow
def test_other_segments_get_other_entries(bilm, encoded, tmp_path):
    """Check that pipelines with different segments of the same words can share a
    folder."""
    words = "green birds sang loudly many people listened".split()
    ways = [
        ({}, [0]),
        ({}, [0, 4]),
        ({}, [0, 3]),
        ({"window": 4, "overlap": 2}, [0]),
        ({"window": 5, "overlap": 0}, [0]),
        ({"window": 5, "overlap": 0, "stateful": True}, [0]),
        ({"segments": "windows"}, [0, 4]),  # the same segments as in the first way
    ]
    results = []
    for number, (config, starts) in enumerate(ways):
        vectors = []
        for cache in ({"cache_layers": "none"}, {"cache_folder": str(tmp_path)}):
            nlp = spacy.blank("xx")
            given = {"bilm": bilm, "segments": "auto", **config, **cache}
            nlp.add_pipe("elmo", config=given)
            nlp.add_pipe("tagger", config={"model": {"tok2vec": elmo_alone()}})
            nlp.initialize(lambda nlp=nlp: make_examples(nlp))
            doc = Doc(nlp.vocab, words=words)
            for token in doc:
                token.is_sent_start = token.i in starts
            encoded.clear()
            elmo = nlp.get_pipe("elmo")
            elmo.update([Example(doc, doc.copy())])
            given, _ = elmo.provide_layers([doc], is_train=True)
            vectors.append(given.data[0])
        assert np.array_equal(*vectors)
        assert encoded == ([] if number == len(ways) - 1 else [1])
        results.append(vectors[0])
    assert len({array.tobytes() for array in results}) == len(ways) - 1
