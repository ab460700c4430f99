"""Choose the engine of a torch model."""

from typing import TYPE_CHECKING

import torch

from .cpu import CPUEngine
from .int8 import Int8Engine
from .padded import PaddedEngine
from .stacked import StackedEngine

if TYPE_CHECKING:
    from ..model import BiLM


def make_engine(bilm: "BiLM", precision: str) -> CPUEngine | PaddedEngine:
    """Make the fastest engine for a model on its current device, in its current
    dtype."""
    on_cpu = bilm.device.type == "cpu" and bilm.dtype == torch.float32
    if precision == "int8" and not on_cpu:
        raise ValueError("int8 needs a float32 model on a CPU")
    if not on_cpu:
        engine = PaddedEngine if bilm.device.type == "cpu" else StackedEngine
        return engine(bilm)
    engine_type = Int8Engine if precision == "int8" else CPUEngine
    return engine_type(bilm.encoder, bilm.directions, bilm.config.lstm.skip_connections)
