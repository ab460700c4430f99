import pytest

import spacy_elmo.report


@pytest.fixture
def no_vega(monkeypatch):
    """Replaces the library that draws charts: it takes seconds to load, and only a
    browser needs it."""
    monkeypatch.setattr(spacy_elmo.report, "load_vega", lambda: "'<!--</script>'")
