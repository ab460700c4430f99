"""Everything but training works in an environment without torch."""

import subprocess
import sys

import pytest
from helpers.pages import ROOT

LIST_TORCH = (
    "print([name for name in sys.modules if name.partition('.')[0] == 'torch'])"
)


def run_python(code):
    command = [sys.executable, "-c", code]
    folder = ROOT / "tests"
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_all_but_training_works_without_torch(tmp_path):
    done = run_python(
        "import helpers.block_torch, sys, pathlib; "
        "from helpers.without_torch import main; "
        f"main(pathlib.Path({str(tmp_path)!r})); " + LIST_TORCH
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "[]"


def test_embedding_imports_no_torch():
    done = run_python(
        "import sys, spacy_elmo; "
        "bilm = spacy_elmo.load_bilm('en_elmo_sm', engine='numpy'); "
        "bilm.embed([['one', 'sentence']]); " + LIST_TORCH
    )
    assert done.stdout.strip() == "[]", done.stderr
