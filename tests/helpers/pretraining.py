"""Run tiny pretrainings."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from spacy_elmo.pretrain.checkpoints import Checkpoints, checksum_facts
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain

CONFIG = """
[paths]
raw_text = null

[model]

[model.encoder]
type = "bytes"
char_dim = 4
filters = [[1, 4], [2, 8], [3, 8]]
n_highway = 1

[model.lstm]
dim = 16
projection_dim = 8
n_layers = 2

[corpus]
lang = "xx"
n_process = 1
dev_share = 0.1

[vocab]
max_words = 60
min_count = 1

[training]
seed = 0
max_steps = 12
max_epochs = 0
batch_size = 4
window = 6
dropout = 0.2
carry_state = true
eval_frequency = 4

[training.optimizer]
name = "adamw"
learn_rate = 0.01
"""


def write_text(path: Path, *, n_documents: int = 30, seed: int = 0) -> Path:
    """Write a random text in which a word depends on the word before it, so that a biLM
    can learn something."""
    rng = np.random.default_rng(seed)
    names = [f"{c}{v}{d}" for c in "bdfgkmt" for v in "aeiou" for d in "nrs"]
    lines = []
    for _ in range(n_documents):
        for _ in range(3):
            start = int(rng.integers(len(names)))
            steps = np.cumsum(rng.integers(1, 4, int(rng.integers(3, 12))))
            words = [names[(start + step) % len(names)] for step in steps]
            lines.append(" ".join(words) + ".")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf8")
    return path


def write_config(path: Path, text: Path, config: str = CONFIG) -> Path:
    path.write_text(config.replace("raw_text = null", f'raw_text = "{text}"'), "utf8")
    return path


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "spacy", "elmo", *map(str, args)]


def run(*args: object, **options: object) -> subprocess.CompletedProcess:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command(*args), capture_output=True, text=True, env=env, **options
    )


def run_training(config_path, output, *, resume=False, overwrite=False, **overrides):
    """Pretrain in this process, and return the messages as one string.

    overrides: Settings to override, with "__" instead of the dots in their names.
    """
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    said = []
    config = load_config(config_path, named)
    pretrain(config, output, resume=resume, overwrite=overwrite, say=said.append)
    return "\n".join(said)


def train(config_path, output, **overrides):
    """Pretrain in this process, and return the messages and the rows of log.jsonl."""
    said = run_training(config_path, output, **overrides)
    return said, load_log(output / "log.jsonl")


def load_log(path):
    """Load the rows of a log."""
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def change_facts(path, change):
    """Change the facts of a checkpoint, as if it had been saved with others.

    change (Callable): Changes the facts that it is called with.
    """
    facts = json.loads(path.read_text("utf8"))
    change(facts)
    facts["checksum_of_facts"] = checksum_facts(facts)
    path.write_text(json.dumps(facts), "utf8")


def save_checkpoint(folder, step):
    """Save a small checkpoint, as a training does."""
    facts = {
        "progress": {"step": step, "epoch": 0, "window": 3, "n_words": 9}
        | {"seconds": 0.5, "best": math.inf, "since_best": 0},
        "n_ranks": 1,
        "run": {"training.window": 5, "model.lstm.dim": 4},
        "words_before": 0,
        "loss_scale": [1.0, 0],
        "random_sizes": [8, 16],
        "fingerprint": "a",
        "vocab": ["<S>", "</S>", "<UNK>"],
    }
    tensors = {
        "state.h": torch.zeros(2, 1, 4, 3),
        "state.c": torch.zeros(2, 1, 4, 3),
        "random": torch.zeros(1, 2, 16, dtype=torch.uint8),
        "a": torch.ones(3) * step,
    }
    Checkpoints(folder).save(step, tensors, facts)
