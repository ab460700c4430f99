"""Check whether a run can continue from a checkpoint, and find where it continues."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from ..bilm import BiLM
from .pretrain_config import TrainingConfig

Facts = dict[str, Any]


def describe_run(bilm: BiLM, training: TrainingConfig) -> Facts:
    """Return the settings that a checkpoint stores, by their dotted names. A run that
    resumes compares them with its settings."""
    config = json.loads(json.dumps(bilm.config.to_dict()))
    run = {
        f"model.{section}.{key}": value
        for section in ("encoder", "lstm")
        for key, value in config[section].items()
    }
    kind = config["softmax"]["type"]
    # A full and a sampled softmax have the same weights, so a run can change the kind.
    run["vocab.softmax"] = kind if kind == "adaptive" else "full or sampled"
    run["training.optimizer.name"] = training.optimizer.name
    run["training.window"] = training.window
    return run


def check_fit(
    folder: Path,
    facts: Facts,
    run: Facts,
    tensors: dict[str, Tensor],
    expected: dict[str, Tensor],
) -> None:
    """Raise ValueError if a checkpoint has another model or optimizer than this run.

    folder (Path): The folder of the checkpoints.
    facts (Facts): The facts of the checkpoint. Older versions stored fewer facts.
    run (Facts): The settings of this run, from describe_run.
    tensors (dict[str, Tensor]): The tensors of the checkpoint.
    expected (dict[str, Tensor]): Tensors with the names and shapes that this run
        needs.
    """
    for key, found in facts.get("run", {}).items():
        wanted = run.get(key, found)
        if key != "training.window" and found != wanted:
            raise ValueError(
                f"{folder}: found a checkpoint with {key} = {found!r}; expected "
                f"{wanted!r}, as this run has"
            )
    for name, tensor in expected.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise ValueError(
                f"{folder}: found a checkpoint of another model or optimizer, whose "
                f"{name} does not fit; expected that of this run"
            )


def find_place(
    facts: Facts, tensors: dict[str, Tensor], training: TrainingConfig, n_ranks: int
) -> tuple[int, list[str]]:
    """Find the window of the epoch at which training continues. If the size of batches
    or windows has changed, it is the window before which the same amount of text lies.

    facts (Facts): The facts of the checkpoint.
    tensors (dict[str, Tensor]): The tensors of the checkpoint.
    training (TrainingConfig): The config of this run.
    n_ranks (int): The number of processes of this run.
    RETURNS (tuple[int, list[str]]): The number of the window, and a phrase for each
        size that has changed.
    """
    n_rows = tensors["state.h"].shape[2]
    sizes = [
        (facts["n_ranks"], n_ranks, "by {} processes"),
        (
            n_rows // facts["n_ranks"],
            training.batch_size,
            "with training.batch_size = {}",
        ),
        (
            facts.get("run", {}).get("training.window", training.window),
            training.window,
            "with training.window = {}",
        ),
    ]
    position = facts["progress"]["window"]
    changes = []
    old_size = new_size = 1
    for old, new, text in sizes:
        old_size, new_size = old_size * old, new_size * new
        if old != new:
            changes.append(f"{text.format(old)} and this run has {new}")
    return position * old_size // new_size, changes
