"""Sentences to embed, and functions that compare two lists of arrays."""

import numpy as np

A = [["The", "cat", "sat"], [], ["on"]]
B = [["Another", "text"], ["with", "more", "words", "in", "it"]]
C = [["A", "third"], ["one", "."]]


def difference(found, expected):
    """Return the largest absolute difference between two lists of arrays, after a check
    that the shapes are equal."""
    assert [x.shape for x in found] == [x.shape for x in expected]
    return max(np.abs(x - y).max(initial=0) for x, y in zip(found, expected))


def same_bits(found, expected):
    return all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
