"""Compare the vectors of tiny models with those that other programs computed from the
same weights. benchmarks/golden_vectors.py made the files and describes them."""

import json
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.bilm import load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm

FIXTURES = Path(__file__).parents[1] / "fixtures"
PROGRAMS = [
    ("bilm", "allennlp"),
    ("bilm", "simple_elmo"),
    ("manylangs", "elmoformanylangs"),
]
# The largest difference was 1.9e-6, in vectors with values up to 20.
TOLERANCE = 5e-6


@pytest.fixture(params=PROGRAMS, ids=lambda names: names[1])
def golden(request):
    """Return a model's folder, its batches of sentences and a program's vectors."""
    name, program = request.param
    folder = FIXTURES / name
    batches = json.loads((folder / "sentences.json").read_text("utf8"))
    with np.load(folder / f"vectors-{program}.npz") as file:
        return folder, batches, dict(file)


def assert_all_close(bilm, batches, expected, *, stateful):
    kind = "stateful" if stateful else "stateless"
    for number, batch in enumerate(batches):
        for row, vectors in enumerate(bilm.embed(batch, stateful=stateful)):
            name = f"{kind}/{number}/{row}"
            assert vectors.shape == expected[name].shape, name
            np.testing.assert_allclose(
                vectors, expected[name], rtol=0, atol=TOLERANCE, err_msg=name
            )


@pytest.mark.parametrize("stateful", [False, True])
def test_vectors_of_every_layer_equal_those_of_the_other_program(golden, stateful):
    folder, batches, expected = golden
    assert_all_close(load_bilm(folder), batches, expected, stateful=stateful)


@pytest.mark.parametrize("stateful", [False, True])
def test_vectors_stay_the_same_in_the_native_format(golden, stateful, tmp_path):
    folder, batches, expected = golden
    save_bilm(load_bilm(folder), tmp_path, "native")
    assert_all_close(load_bilm(tmp_path), batches, expected, stateful=stateful)


def test_golden_vectors_depend_on_clips_and_on_carried_states(golden):
    """Without this, the comparisons above could miss errors in clips and states."""
    folder, batches, expected = golden
    n_sentences = sum(map(len, batches))
    assert len(expected) == 2 * n_sentences
    clip = np.float32(load_bilm(folder).config.lstm.proj_clip)
    first_layer = np.concatenate([vectors[1] for vectors in expected.values()])
    assert np.abs(first_layer).max() == clip
    for row in range(len(batches[0])):  # the first batch starts from zero states
        np.testing.assert_allclose(
            expected[f"stateful/0/{row}"],
            expected[f"stateless/0/{row}"],
            rtol=0,
            atol=TOLERANCE,
        )
    difference = expected["stateful/1/0"] - expected["stateless/1/0"]
    assert np.abs(difference).max() > 0.1
