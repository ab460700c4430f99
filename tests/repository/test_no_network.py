"""Nothing but `assets` uses the network: everything else works where sockets are
refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.no_network import REFUSE

ROOT = Path(__file__).parents[2]
COMMANDS = """
import json, sys
from pathlib import Path
from spacy.cli.train import train
from spacy_elmo.cli import app
def run(*args):
    app([str(arg) for arg in args], standalone_mode=False)
    print("done", args[0])
out, root = Path(sys.argv[1]), Path(sys.argv[2])
text, treebank = root / "assets/text/en.txt", root / "assets/treebank/en"
tiny = json.loads(sys.argv[3])
run("pretrain", root / "configs/pretrain_demo.cfg", "--output", out / "bilm",
    "--paths.raw_text", text, "--training.max_steps", 3, "--corpus.n_process", 2, *tiny)
run("info", "en_elmo_sm")
run("embed", "en_elmo_sm", text, out / "a.parquet")
run("evaluate", out / "bilm/model-last", text, "-o", out / "results/evaluate.json")
run("neighbors", "en_elmo_sm", text, "--query", "It is cold", "--word", "cold",
    "-o", out / "results/neighbors.json")
run("prepare", treebank, out / "data", "--limit", 20)
run("report", out / "results")
train(root / "configs/tagging_elmo.cfg", out / "tagger", overrides={
    "paths.train": str(out / "data/train.spacy"),
    "paths.dev": str(out / "data/dev.spacy"),
    "training.max_steps": 2, "training.eval_frequency": 2})
print("done", "train")
"""
SMALL = [
    "--model.lstm.dim=16",
    "--model.lstm.projection_dim=8",
    "--training.batch_size=4",
    "--training.eval_frequency=3",
]


def run(code, folder, *args):
    """Run code in a process that refuses sockets, without the proxies of this one."""
    (folder / "refuse").mkdir()
    (folder / "refuse" / "sitecustomize.py").write_text(REFUSE)
    paths = [str(folder / "refuse"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )


def test_sockets_are_refused(tmp_path):
    done = run("import socket; socket.create_connection(('127.0.0.1', 9))", tmp_path)
    assert "the network was used" in done.stderr


@pytest.mark.slow
def test_everything_works_without_a_network(tmp_path):
    done = run(COMMANDS, tmp_path, tmp_path, ROOT, json.dumps(SMALL))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    expected = ["pretrain", "info", "embed", "evaluate", "neighbors", "prepare"]
    expected += ["report", "train"]
    found = [line.split()[1] for line in done.stdout.splitlines() if "done " in line]
    assert found == expected
