"""Compute how the learning rate changes during a training."""

import math

from .pretrain_config import ScheduleConfig


def schedule(config: ScheduleConfig, step: int, share: float) -> float:
    """Return the factor by which the highest learning rate is multiplied.

    config (ScheduleConfig): The kind of schedule and its parameters.
    step (int): The number of the step, from 0 on.
    share (float): The share of the training that is done.
    """
    warmup = config.warmup_steps
    if step < warmup:
        return (step + 1) / warmup
    if config.decay == "inverse_sqrt":
        return math.sqrt(max(1, warmup) / max(1, step))
    falling = {
        "constant": 1.0,
        "linear": 1 - share,
        "cosine": 0.5 * (1 + math.cos(math.pi * share)),
    }[config.decay]
    return config.final_share + (1 - config.final_share) * falling
