"""One training step: the gradients of both directions over a window of streams."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..engines.threads import side_by_side
from ..model import BiLM
from ..stack import run_stack
from ..state import LayerState, State
from .lstm_backward import run_layer
from .softmax_backward import (
    Gradient,
    Sample,
    add_gradients,
    draw_sample,
    loss_and_gradients,
)


class Window(NamedTuple):
    """Some steps of several streams of text, one stream per row. Direction 0 reads
    forward; direction 1 reads each sentence from its end.

    ids: The encoder's ids of distinct words. Each group of words of similar length has
        a tensor, (n_words of the group, ...).
    tokens: The word that each direction reads at each step, (2, n_steps, n_rows): a row
        of ids, counted through all groups.
    targets: The word of the softmax that each direction should predict, (2, n_steps,
        n_rows).
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
        if not self.rate:
            return x
        kept = torch.empty_like(x).bernoulli_(
            1 - self.rate, generator=self.generators[direction]
        )
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
) -> Step:
    """Compute the gradients of a window.

    state (State): The states that the previous window ended with.
    frozen (bool): Compute only the gradients of the softmax.
    dtype (torch.dtype | None): The dtype in which the encoder and the LSTMs compute;
        None for that of the weights.
    loss_scale (float): Multiplies the gradients while they pass through the LSTMs and
        the encoder, so that float16 does not lose small ones. The returned gradients
        are divided by it again.
    RETURNS (Step): Losses, gradients and the new state.
    """
    assert bilm.softmax is not None
    n_targets = window.targets[0].numel()
    vectors = encode_words(bilm, window, frozen, dtype)
    samples = [draw_sample(bilm.softmax, bilm.device) for _ in range(2)]
    tasks = [
        partial(
            _direction,
            bilm,
            window,
            vectors.detach(),
            state,
            dropout,
            d,
            sample,
            None if frozen else loss_scale,
        )
        for d, sample in enumerate(samples)
    ]
    first, second = side_by_side(tasks, parallel=bilm.device.type == "cpu")
    gradients: dict[str, Gradient] = {}
    for name in first.head:
        total = add_gradients([first.head[name], second.head[name]])
        gradients[f"softmax.{name}"] = _scaled(total, 0.5 / n_targets)
    if not frozen:
        d_vectors = first.d_vectors + second.d_vectors
        encoder = encoder_gradients(bilm, vectors, d_vectors)
        for name, part in {**first.layers, **second.layers, **encoder}.items():
            gradients[name] = _scaled(part, 0.5 / n_targets / loss_scale)
    new_state = State.stack([first.states, second.states])
    return Step(torch.stack([first.loss, second.loss]), gradients, new_state)


class _Direction(NamedTuple):
    loss: Tensor
    d_vectors: Tensor
    layers: dict[str, Gradient]
    head: dict[str, Gradient]
    states: list[LayerState]


def _direction(
    bilm: BiLM,
    window: Window,
    vectors: Tensor,
    state: State,
    dropout: Dropout,
    d: int,
    sample: Sample | None,
    loss_scale: float | None,
) -> _Direction:
    """Run one direction, forward and backward.

    vectors (Tensor): The vectors of distinct words, (n_words, proj).
    d (int): The direction: 0 forward, 1 backward.
    loss_scale (float | None): As for train_step. None computes only the gradients of
        the softmax.
    """
    frozen = loss_scale is None
    assert bilm.softmax is not None
    layers = bilm.directions[d]
    root = ("forward_layers", "backward_layers")[d]
    with torch.set_grad_enabled(not frozen):
        # Each direction computes its own gradients: one backward pass for both would
        # run in a single thread.
        vectors = vectors.requires_grad_(not frozen)
        # Unlike indexing, F.embedding adds up gradients in a fixed order.
        x = F.embedding(window.tokens[d], vectors)  # (n_steps, n_rows, proj)
        drop = partial(dropout, direction=d)
        top, last = run_direction(bilm, d, x, state, window.keep, dropout=drop)
        hidden = drop(top).flatten(0, 1)  # (n_steps * n_rows, proj)
    head = loss_and_gradients(
        bilm.softmax,
        hidden.detach().to(bilm.dtype),
        window.targets[d].flatten(),
        sample,
        # Do not use float16, which would lose small probabilities.
        torch.bfloat16 if hidden.dtype == torch.bfloat16 else None,
    )
    grads: dict[str, Gradient] = {}
    d_vectors = vectors
    if loss_scale is not None:
        named = {
            f"{root}.{j}.{name}": weight
            for j, layer in enumerate(layers)
            for name, weight in layer.named_parameters()
        }
        d_vectors, *parts = torch.autograd.grad(
            hidden,
            [vectors, *named.values()],
            (head.d_hidden * loss_scale).to(hidden.dtype),
        )
        grads = dict(zip(named, parts))
    return _Direction(head.loss, d_vectors, grads, head.gradients, last)


def run_direction(
    bilm: BiLM,
    direction: int,
    x: Tensor,
    state: State,
    keep: Tensor | None = None,
    *,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, list[LayerState]]:
    """Run all layers of one direction over streams.

    x (Tensor): Token vectors in the order in which this direction reads them,
        (n_steps, n_rows, proj).
    state (State): States to start from. They get no gradient.
    keep (Tensor | None): As for run_layer.
    dropout (Callable | None): Applied to the inputs of each layer.
    RETURNS (tuple[Tensor, list[LayerState]]): The outputs of the top layer, (n_steps,
        n_rows, proj), and the last state of each layer.
    """
    outputs = run_stack(
        bilm.directions[direction],
        x,
        state.layers(direction),
        lambda layer, x, start: run_layer(layer, x, start, keep),
        skip_connections=bilm.config.lstm.skip_connections,
        dropout=dropout,
    )
    layers, last = zip(*outputs)
    return layers[-1], list(last)


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
