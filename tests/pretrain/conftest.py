import pytest
from helpers.pretraining import write_config, write_text


@pytest.fixture
def config_path(tmp_path):
    """Write a text and the config of a tiny pretraining on it."""
    return write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
