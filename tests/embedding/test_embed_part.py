"""The bits of a part depend on its sentences alone, so that workers can share the parts
of a text in any way."""

import numpy as np
import pytest
from helpers.pipelines import save_bilm

from spacy_elmo.bilm import load_bilm
from spacy_elmo.embedding.embed_part import embed_part, identify_rows

WORDS = [f"{'abcdefghijk'[n % 11] * (1 + n % 7)}{n}" for n in range(700)]
WORDS[::50] = [f"{'x' * 60}{n}" for n in range(14)]
PARTS = [
    [[WORDS[(7 * row + n * n) % 700] for n in range(5 + row % 20)] for row in rows]
    for rows in (range(40), range(60, 90), [3], range(40, 45))
]


@pytest.mark.parametrize("engine", ["torch", "numpy"])
@pytest.mark.parametrize("name", ["en_elmo_sm", "tiny"])
def test_earlier_parts_do_not_change_the_bits(tmp_path, engine, name):
    """The words of a part must be encoded together. With the tiny biLM, torch takes
    another path for words beside one of the greatest length."""
    source = save_bilm(tmp_path / "bilm") if name == "tiny" else name
    bilm = load_bilm(source, engine=engine)
    found = [embed_part(bilm, part) for part in PARTS]
    for part, arrays in list(zip(PARTS, found))[::-1]:
        bilm.clear_cache()
        for one, other in zip(embed_part(bilm, part), arrays):
            np.testing.assert_array_equal(one, other)


def test_engines_are_told_apart():
    rows = [
        identify_rows(load_bilm("en_elmo_sm", engine=e)) for e in ("torch", "numpy")
    ]
    assert rows[0] != rows[1]
