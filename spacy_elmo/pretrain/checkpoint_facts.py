"""Check the facts and tensors of a checkpoint, so that training can rely on them."""

from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

LARGEST = 2**53  # processes exchange numbers as floats, which are exact until here
SHAPES = {"state.h": 4, "state.c": 4, "random": 3}  # dimensions

Count = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[int, Field(ge=1, le=LARGEST)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Exact(BaseModel):
    """Facts whose values have exactly these types."""

    model_config = ConfigDict(strict=True)


class ProgressFacts(Exact):
    """The facts of a Progress."""

    model_config = ConfigDict(extra="forbid")

    step: Count
    epoch: Count = 0
    window: Count = 0
    n_words: Count = 0
    seconds: Number = 0.0
    best: float = Field(default=0.0, ge=0)  # infinite until the first evaluation
    since_best: Count = 0


class RunFacts(Exact):
    """The settings of the run that counts are computed with. There are others."""

    window: Size = Field(default=1, alias="training.window")


class CheckpointFacts(Exact):
    """All facts. Earlier versions stored no `run` and no `words_before`."""

    progress: ProgressFacts
    n_ranks: Size
    run: RunFacts = RunFacts()
    words_before: Count = 0
    loss_scale: list[Number] = Field(min_length=2, max_length=2)
    random_sizes: list[Count] = Field(min_length=1)
    fingerprint: str
    vocab: list[str]


def check_facts(facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise ValueError if facts or tensors of a checkpoint are missing, or are not what
    a training saves."""
    try:
        found = CheckpointFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}") from None
    scale, n_good = facts["loss_scale"]
    if not scale or type(n_good) is not int:
        raise ValueError(
            f"loss_scale: found {scale} and {n_good}; expected a number above 0 and a "
            "whole number"
        )
    for name, n_dimensions in SHAPES.items():
        if name not in tensors or tensors[name].dim() != n_dimensions:
            raise ValueError(
                f"{name}: found no tensor with {n_dimensions} dimensions; expected one"
            )
    n_rows, n_ranks = tensors["state.h"].shape[2], found.n_ranks
    if n_rows % n_ranks or tensors["state.c"].shape[2] != n_rows:
        raise ValueError(
            f"state.h: found {n_rows} rows; expected a multiple of {n_ranks}, as many "
            "as state.c has"
        )
    random = tensors["random"]
    fits = random.shape[:2] == (n_ranks, len(found.random_sizes))
    fits = fits and max(found.random_sizes) <= random.shape[2]
    if not fits or random.dtype != torch.uint8:
        raise ValueError(
            f"random: found {tuple(random.shape)} numbers of {random.dtype}; expected "
            "bytes for n_ranks and random_sizes"
        )
