"""The bits of a part depend on its sentences alone, so that workers can share the parts
of a text in any way."""

import numpy as np
import pytest

from spacy_elmo.bilm import load_bilm
from spacy_elmo.embedding.embed_part import embed_part, identify_rows

WORDS = [f"{'abcdefghijk'[n % 11] * (1 + n % 7)}{n}" for n in range(700)]
PARTS = [
    [[WORDS[(7 * row + n * n) % 700] for n in range(5 + row % 20)] for row in rows]
    for rows in (range(40), range(60, 90), [3], range(40, 45))
]


@pytest.mark.parametrize("engine", ["torch", "numpy"])
def test_earlier_parts_do_not_change_the_bits(engine):
    bilm = load_bilm("en_elmo_sm", engine=engine)
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
