"""The learning rate over a training."""

import math

from .pretrain_config import ScheduleConfig


def schedule(settings: ScheduleConfig, step: int, share: float) -> float:
    """RETURNS (float): What to multiply the learning rate with.

    share (float): How much of the training is done.
    """
    warmup = settings.warmup_steps
    if step < warmup:
        return (step + 1) / warmup
    if settings.decay == "inverse_sqrt":
        return math.sqrt(max(1, warmup) / max(1, step))
    falling = {
        "constant": 1.0,
        "linear": 1 - share,
        "cosine": 0.5 * (1 + math.cos(math.pi * share)),
    }[settings.decay]
    return settings.final_share + (1 - settings.final_share) * falling
