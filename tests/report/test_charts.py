import math

import pytest

from spacy_elmo.report.charts.base import MAX_LETTERS, break_lines
from spacy_elmo.report.charts.xy import round_numbers


@pytest.mark.parametrize("name", ["", "x", "ELMo, learned mix, lambda 0.001", "a" * 99])
def test_names_are_cut_into_lines_of_about_the_same_length(name):
    lines = break_lines(name)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, lines)) <= MAX_LETTERS
    if name.startswith("ELMo"):
        assert lines == ["ELMo, learned", "mix, lambda 0.001"]


@pytest.mark.parametrize("low, high", [(0.5, 3), (66, 400), (1, 1e6)])
def test_round_numbers_lie_between(low, high):
    found = round_numbers(low, high)
    assert all(low <= number <= high for number in found)
    digits = {f"{number:e}"[0] for number in found}
    assert digits <= {"1", "2", "5"} and len(found) >= math.log10(high / low) * 2
