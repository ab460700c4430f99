import pytest
from helpers.command import call, text
from helpers.gold import load, write_files


@pytest.fixture
def prepare(tmp_path):
    """Return a function that writes files to a folder, and calls `spacy elmo prepare`
    with this folder.

    The function returns the docs of each split, and the text that the command printed.
    """

    def run(files, *options):
        source, output = write_files(tmp_path / "source", files), tmp_path / "output"
        done = call("prepare", source, output, *options)
        assert done.exit_code == 0, done.output
        docs = {path.stem: load(path) for path in output.glob("*.spacy")}
        return docs, text(done)

    return run
