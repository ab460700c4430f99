"""One training step: the gradients of both directions over a window of streams."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ..model import BiLM
from ..state import State
from .directions import run_in_threads, run_stacked
from .softmax_backward import Gradient, add_gradients, draw_sample


class Window(NamedTuple):
    """Some steps of several streams of text, one stream per row. Direction 0 reads
    forward; direction 1 reads each sentence from its end.

    ids: The encoder's ids of distinct words. Each group of words of similar length has
        a tensor, (n_words of the group, ...).
    tokens: The word that each direction reads at each step, (2, n_steps, n_rows): a row
        of ids, counted through all groups.
    targets: The word of the softmax that each direction should predict, (2, n_steps,
        n_rows). They are on the host, where their distinct words are found without
        waiting for a GPU.
    keep: 0 where a row forgets its state before a step, 1 elsewhere, (n_steps, n_rows,
        1); None if states are never forgotten.
    """

    ids: Sequence[Tensor]
    tokens: Tensor
    targets: Tensor
    keep: Tensor | None


class Step(NamedTuple):
    """The result of a training step.

    losses: The summed loss of each direction, (2,).
    gradients: The gradients of the mean loss, by the names of the weights.
    state: The states to start the next window from.
    """

    losses: Tensor
    gradients: dict[str, Gradient]
    state: State


class Dropout:
    """Dropout for the inputs of the LSTMs and of the softmax. Each direction has its
    own random generator: both run at the same time, and the result must not depend on
    which one is faster."""

    def __init__(self, rate: float, seed: int, device: torch.device) -> None:
        self.rate = rate
        self.generators = [torch.Generator(device) for _ in range(2)]
        for number, generator in enumerate(self.generators):
            generator.manual_seed(2 * seed + number)

    def __call__(self, x: Tensor, direction: int) -> Tensor:
        return self.both(x[None], [direction])[0]

    def both(self, x: Tensor, directions: Sequence[int] = (0, 1)) -> Tensor:
        """Apply dropout to the inputs of several directions, (n_directions, ...)."""
        if not self.rate:
            return x
        kept = torch.empty_like(x)
        for part, direction in zip(kept, directions, strict=True):
            part.bernoulli_(1 - self.rate, generator=self.generators[direction])
        return x * kept.div_(1 - self.rate)


def train_step(
    bilm: BiLM,
    window: Window,
    state: State,
    dropout: Dropout,
    *,
    frozen: bool = False,
    dtype: torch.dtype | None = None,
    loss_scale: float = 1.0,
    stacked: bool | None = None,
    compiled: bool = False,
    on_gradients: Callable[[dict[str, Gradient]], None] = lambda gradients: None,
) -> Step:
    """Compute the gradients of a window.

    state (State): The states that the previous window ended with.
    frozen (bool): Compute only the gradients of the softmax.
    dtype (torch.dtype | None): The dtype in which the encoder and the LSTMs compute;
        None for that of the weights.
    loss_scale (float): Multiplies the gradients while they pass through the LSTMs and
        the encoder, so that float16 does not lose small ones. The returned gradients
        are divided by it again.
    stacked (bool | None): Compute both directions in the same operations instead of in
        two threads. None for what is faster on the device.
    compiled (bool): Compile the steps of the LSTMs, which needs stacked directions.
    on_gradients (Callable): Called with the gradients of softmax and LSTMs before those
        of the encoder are computed, then with these.
    RETURNS (Step): Losses, gradients and the new state.
    """
    assert bilm.softmax is not None
    n_targets = window.targets[0].numel()
    vectors = encode_words(bilm, window, frozen, dtype)
    samples = [draw_sample(bilm.softmax) for _ in range(2)]
    if stacked is None:
        stacked = compiled or bilm.device.type != "cpu"
    run = partial(run_stacked, compiled=compiled) if stacked else run_in_threads
    scale = None if frozen else loss_scale
    found = run(bilm, window, vectors.detach(), state, dropout, samples, scale)
    gradients: dict[str, Gradient] = {}
    for name in found.heads[0].gradients:
        total = add_gradients([head.gradients[name] for head in found.heads])
        gradients[f"softmax.{name}"] = _scaled(total, 0.5 / n_targets)
    factor = 0.5 / n_targets / loss_scale
    for name, part in found.layers.items():
        gradients[name] = _scaled(part, factor)
    on_gradients(gradients)
    if not frozen:
        parts = encoder_gradients(bilm, vectors, found.d_vectors)
        encoder = {name: _scaled(part, factor) for name, part in parts.items()}
        on_gradients(encoder)
        gradients |= encoder
    losses = torch.stack([head.loss for head in found.heads])
    return Step(losses, gradients, found.state)


def encode_words(
    bilm: BiLM, window: Window, frozen: bool, dtype: torch.dtype | None
) -> Tensor:
    """Compute the vectors of the window's distinct words, (n_words, proj); arguments as
    for train_step."""
    dtype = dtype or bilm.dtype
    half = dtype != bilm.dtype
    with (
        torch.set_grad_enabled(not frozen),
        torch.autocast(bilm.device.type, dtype if half else None, enabled=half),
    ):
        return bilm.encoder(*window.ids).to(dtype)


def encoder_gradients(
    bilm: BiLM, vectors: Tensor, d_vectors: Tensor
) -> dict[str, Gradient]:
    """Compute the gradients of the encoder's weights, by the names of the weights.

    vectors (Tensor): The result of encode_words, (n_words, proj).
    d_vectors (Tensor): The gradients of the vectors, (n_words, proj).
    """
    named = {
        f"encoder.{name}": weight
        for name, weight in bilm.encoder.named_parameters()
        if weight.requires_grad
    }
    if not named:
        return {}
    parts = torch.autograd.grad(
        vectors, list(named.values()), d_vectors, allow_unused=True
    )
    return {name: part for name, part in zip(named, parts) if part is not None}


def _scaled(gradient: Gradient, factor: float) -> Gradient:
    if isinstance(gradient, Tensor):
        return gradient.mul_(factor)
    gradient.values.mul_(factor)
    return gradient
