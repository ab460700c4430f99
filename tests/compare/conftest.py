import pytest
from helpers.comparing import FakeTraining, InProcessPool, save_data

import spacy_elmo.compare.comparison
from spacy_elmo.compare.jobs import JOBS


@pytest.fixture(scope="package")
def data(tmp_path_factory):
    return save_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(spacy_elmo.compare.comparison, "WorkerPool", InProcessPool)


@pytest.fixture
def fake_training(in_process, monkeypatch):
    fake = FakeTraining()
    monkeypatch.setitem(JOBS, "train", fake)
    monkeypatch.setitem(JOBS, "layers", lambda **arguments: 0)
    return fake
