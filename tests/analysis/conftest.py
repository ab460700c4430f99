import pytest

from spacy_elmo.analysis import linear_classifier


@pytest.fixture
def quick(monkeypatch):
    """Train classifiers for fewer steps, for tests that need no high accuracy."""
    monkeypatch.setattr(linear_classifier, "MIN_STEPS", 200)
