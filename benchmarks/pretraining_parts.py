"""Measure how long each part of spacy_elmo's training step takes."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from spacy_elmo.bilm.training import directions
from spacy_elmo.bilm.training import step as step_module
from spacy_elmo.bilm.training.lstm_backward import LSTMFunction
from spacy_elmo.pretrain import trainer
from spacy_elmo.pretrain.optimizers import Adagrad
from spacy_elmo.pretrain.windows import Epochs, WindowEncoder

DIRECTIONS = "both directions"
# Parts that run one after another: owner, function, name in the report.
PARTS: list[tuple[Any, str, str]] = [
    (Epochs, "window", "reading and feeding"),
    (WindowEncoder, "encode", "reading and feeding"),
    (step_module, "encode_words", "encoder forward"),
    (directions, "side_by_side", DIRECTIONS),
    (step_module, "encoder_gradients", "encoder backward"),
    (trainer, "clip_by_norm", "clipping"),
    (Adagrad, "step", "optimizer"),
]
# Parts of a direction; both directions run at the same time.
INNER: list[tuple[Any, str, str]] = [
    (step_module.Dropout, "__call__", "dropout"),
    (directions, "run_layer", "LSTMs forward"),
    (directions, "loss_and_gradients", "softmax forward and backward"),
    (LSTMFunction, "backward", "LSTMs backward"),
]


class Stopwatch:
    """Adds up the seconds spent in functions, by name."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.lock = threading.Lock()

    def wrap(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                with self.lock:
                    self.seconds[name] += time.perf_counter() - start

        return timed


def measure_parts(step: Callable[[], None], n_steps: int) -> dict[str, Any]:
    """Measure the mean seconds of a whole step ("step"), of its parts ("parts"), and of
    the parts of one direction ("directions")."""
    watch = Stopwatch()
    with ExitStack() as stack:
        for owner, attribute, name in PARTS + INNER:
            timed = watch.wrap(getattr(owner, attribute), name)
            stack.enter_context(patch.object(owner, attribute, timed))
        start = time.perf_counter()
        for _ in range(n_steps):
            step()
        total = (time.perf_counter() - start) / n_steps
    seconds = {name: time / n_steps for name, time in watch.seconds.items()}
    parts = {name: seconds.get(name, 0.0) for _, _, name in PARTS}
    # Half of the sum of both directions, because they run at the same time.
    inner = {name: seconds.get(name, 0.0) / 2 for _, _, name in INNER}
    parts["the rest"] = total - sum(parts.values())
    inner["the rest"] = parts[DIRECTIONS] - sum(inner.values())
    return {"step": total, "parts": parts, "directions": inner}


def format_parts(measured: dict[str, Any]) -> str:
    """Format the measurement, one line per part."""
    total = measured["step"]
    lines = [f"where the time of ours goes, of {total:.3f} seconds a step:"]
    for name, seconds in measured["parts"].items():
        lines.append(f"  {name:<32}{seconds:8.3f}{seconds / total:6.0%}")
        if name == DIRECTIONS:
            for inner, own in measured["directions"].items():
                lines.append(f"    {inner:<30}{own:8.3f}{own / total:6.0%}")
    return "\n".join(lines)
