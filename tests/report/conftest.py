import pytest

import spacy_elmo.report


@pytest.fixture
def no_vega(monkeypatch):
    """Replace the library that draws charts, because it takes seconds to load, and only
    a browser needs it."""
    monkeypatch.setattr(spacy_elmo.report, "load_vega", lambda: "'<!--</script>'")
