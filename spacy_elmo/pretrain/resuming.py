"""Whether a checkpoint fits the run that is to go on from it, and where it goes on."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from ..bilm import BiLM
from .pretrain_config import TrainingConfig

Facts = dict[str, Any]


def describe_run(bilm: BiLM, settings: TrainingConfig) -> Facts:
    """RETURNS (Facts): What a later run must know of this one, by dotted names."""
    config = json.loads(json.dumps(bilm.config.to_dict()))
    run = {
        f"model.{section}.{key}": value
        for section in ("encoder", "lstm")
        for key, value in config[section].items()
    }
    kind = config["softmax"]["type"]
    # The other two have the same weights.
    run["vocab.softmax"] = kind if kind == "adaptive" else "full or sampled"
    run["training.optimizer.name"] = settings.optimizer.name
    run["training.window"] = settings.window
    return run


def check_fit(
    folder: Path,
    facts: Facts,
    run: Facts,
    tensors: dict[str, Tensor],
    expected: dict[str, Tensor],
) -> None:
    """One sentence if a checkpoint is one of another model or optimizer.

    folder (Path): Of the checkpoints.
    facts (Facts): What the checkpoint says; those of older versions say less.
    run (Facts): From describe_run.
    expected (dict[str, Tensor]): Tensors of the names and shapes that are needed.
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
    facts: Facts, tensors: dict[str, Tensor], settings: TrainingConfig, n_ranks: int
) -> tuple[int, list[str]]:
    """The window of an epoch from which to go on where streams have other sizes: the
    one before which about as much of the text has been read.

    RETURNS (tuple[int, list[str]]): The window, and what has changed, in words.
    """
    n_rows = tensors["state.h"].shape[2]
    sizes = [
        (facts["n_ranks"], n_ranks, "by {} processes"),
        (
            n_rows // facts["n_ranks"],
            settings.batch_size,
            "with training.batch_size = {}",
        ),
        (
            facts.get("run", {}).get("training.window", settings.window),
            settings.window,
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
