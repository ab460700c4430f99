"""Damaged files of weights: what is loaded is exactly what was saved, or a sentence
says what is wrong. Files of other programs may have no checksums, so that a changed
number in them cannot be noticed; there, what is loaded must be whole and finite."""

import shutil
import warnings

import numpy as np
import pytest
from helpers.fuzzing import damage_file
from helpers.hdf5_models import VOCAB, small_model, write_pair
from helpers.manylangs_models import write_model
from helpers.native_models import make_bilm

from spacy_elmo.bilm import SourceError, load_data
from spacy_elmo.bilm.formats.native import load_native_parts, native_parts
from spacy_elmo.bilm.shapes import expected_shapes

N_TRIALS = 60
MEMORY = 2**30


@pytest.fixture(autouse=True)
def little_memory():
    """Let tests take at most 1 GB more than the process has."""
    resource = pytest.importorskip("resource")
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def write_native(folder, kind, dtype):
    make_bilm(kind).save(folder, dtype=dtype)


def write_hdf5(folder):
    write_pair(folder, *small_model(), vocab=VOCAB)


def write_manylangs(folder):
    write_model(folder, token__word_dim=5)


NATIVE = [("chars-cnn-words", "float32"), ("bytes-full", "int8"), ("words", "float16")]


def load(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that a second config is missing
        return load_data(folder)


def same(one, other):
    return (
        one.config == other.config
        and one.lexicon == other.lexicon
        and one.vocab == other.vocab
        and one.arrays.keys() == other.arrays.keys()
        and all(np.array_equal(a, other.arrays[k]) for k, a in one.arrays.items())
    )


def refused(error):
    assert "\n" not in str(error)
    return True


def load_damaged(fuzz, tmp_path):
    """Damage one file in copies of the folder "whole". Yield what they contain, if they
    are not refused."""
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    for rng in fuzz.trials(N_TRIALS):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        damage_file(rng.choice(files), rng)
        try:
            found = load(copy)
        except SourceError as error:
            assert refused(error)
        else:
            yield found


@pytest.mark.parametrize(("kind", "dtype"), NATIVE)
def test_native_folders(kind, dtype, fuzz, tmp_path):
    write_native(tmp_path / "whole", kind, dtype)
    expected = load(tmp_path / "whole")
    for found in load_damaged(fuzz, tmp_path):
        assert same(found, expected)


@pytest.mark.parametrize("write", [write_hdf5, write_manylangs])
@pytest.mark.slow
def test_files_of_other_programs(write, fuzz, tmp_path):
    write(tmp_path / "whole")
    for found in load_damaged(fuzz, tmp_path):
        shapes = {name: array.shape for name, array in found.arrays.items()}
        assert shapes == expected_shapes(found.config, found.lexicon)
        assert all(np.isfinite(array).all() for array in found.arrays.values())


def test_parts_of_pipelines(fuzz, tmp_path):
    import srsly
    from helpers.fuzzing import mutate

    expected = make_bilm("chars-cnn-words").data
    contents = srsly.msgpack_dumps(native_parts(expected))
    for rng in fuzz.trials(N_TRIALS):
        try:
            parts = srsly.msgpack_loads(mutate(contents, rng))
        except Exception:  # msgpack's own errors; the component names the file
            continue
        try:
            found = load_native_parts(parts)
        except SourceError as error:
            assert refused(error)
        else:
            assert same(found, expected)
