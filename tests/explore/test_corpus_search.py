"""Test the parts of the search that the answers do not show."""

import numpy as np
import pytest
from helpers.analysis import make_bilm, make_index, random_sentences

from spacy_elmo.analysis.token_index import open_index_of
from spacy_elmo.explore.corpus_search import to_float32


def test_all_finite_numbers_are_converted_exactly():
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = numbers[np.isfinite(numbers)]
    found = to_float32(numbers)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, numbers.astype(np.float32))


def test_an_index_is_opened_for_the_bilm_that_it_was_built_with(tmp_path):
    bilms = [make_bilm(seed) for seed in range(3)]
    built = make_index(bilms[1], tmp_path, random_sentences(5))
    number, index = open_index_of(built.folder, bilms)
    assert number == 1 and index.words == built.words
    with pytest.raises(ValueError, match="found the index of another biLM"):
        open_index_of(built.folder, [bilms[0], bilms[2]])


@pytest.mark.parametrize(
    "name, content",
    [
        ("index.json", b"{}"),
        ("index.json", b"[1]"),
        ("index.json", b'{"key": 3}'),
        ("index.json", b'{"key": {"format": 1}}'),
        ("words.json", b"["),
        ("tokens.npy", b""),
        ("layer-1.float16", b"12"),
    ],
)
def test_a_damaged_index_gives_one_sentence(tmp_path, name, content):
    bilm = make_bilm()
    folder = make_index(bilm, tmp_path, random_sentences(5)).folder
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match="found no complete index; expected a folder"):
        open_index_of(folder, [bilm])
    with pytest.raises(ValueError, match="found no complete index"):
        open_index_of(tmp_path / "nothing", [bilm])
