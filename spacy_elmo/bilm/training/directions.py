"""Both directions of a training step, forward and backward: in two threads, which is
fastest on a CPU, or stacked, which is fastest on a GPU."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..engines.threads import side_by_side
from ..layers import ProjectedLSTM
from ..model import BiLM
from ..stack import run_stack
from ..state import LayerState, State
from .lstm_backward import run_layer
from .softmax_backward import Gradient, HeadResult, Sample, loss_and_gradients
from .stacked_lstm import run_stacked_layer, stack_weights

if TYPE_CHECKING:
    from .step import Dropout, Window

ROOTS = ("forward_layers", "backward_layers")


class Directions(NamedTuple):
    """The results of both directions.

    heads: The results of the softmax, for each direction.
    d_vectors: The gradients of the vectors of distinct words, (n_words, proj).
    layers: The gradients of the LSTMs, by the names of the weights.
    state: The states to start the next window from.
    """

    heads: list[HeadResult]
    d_vectors: Tensor
    layers: dict[str, Gradient]
    state: State


def run_stacked(
    bilm: BiLM,
    window: "Window",
    vectors: Tensor,
    state: State,
    dropout: "Dropout",
    samples: Sequence[Sample | None],
    loss_scale: float | None,
    *,
    compiled: bool = False,
) -> Directions:
    """Run both directions in the same operations; arguments as for run_in_threads.

    compiled (bool): Run the steps of a layer as one program that torch.compile makes.
    """
    frozen = loss_scale is None
    with torch.set_grad_enabled(not frozen):
        vectors = vectors.requires_grad_(not frozen)
        x = F.embedding(window.tokens, vectors)  # (2, n_steps, n_rows, proj)
        top, new_state = run_both_directions(
            bilm, x, state, window.keep, dropout=dropout.both, compiled=compiled
        )
        hidden = dropout.both(top).flatten(1, 2)  # (2, n_steps * n_rows, proj)
    heads = [
        _run_head(bilm, hidden[d], window.targets[d], sample)
        for d, sample in enumerate(samples)
    ]
    grads: dict[str, Gradient] = {}
    d_vectors = vectors
    if loss_scale is not None:
        named = {
            name: weight
            for d in range(2)
            for name, weight in _named_weights(bilm, d).items()
        }
        d_hidden = torch.stack([head.d_hidden for head in heads]) * loss_scale
        d_vectors, grads = _backward(hidden, d_hidden, vectors, named)
    return Directions(heads, d_vectors, grads, new_state)


def _backward(
    hidden: Tensor, d_hidden: Tensor, vectors: Tensor, weights: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Gradient]]:
    """Compute the gradients of word vectors, and those of weights by name.

    hidden, d_hidden (Tensor): The outputs of the LSTMs and their gradients.
    """
    inputs = [vectors, *weights.values()]
    d_vectors, *grads = torch.autograd.grad(hidden, inputs, d_hidden.to(hidden.dtype))
    return d_vectors, dict(zip(weights, grads))


def run_both_directions(
    bilm: BiLM,
    x: Tensor,
    state: State,
    keep: Tensor | None = None,
    *,
    dropout: Callable[[Tensor], Tensor] | None = None,
    compiled: bool = False,
) -> tuple[Tensor, State]:
    """Run all layers of both directions over streams, in the same operations; the other
    arguments as for run_direction and run_stacked.

    x (Tensor): Token vectors in the order in which each direction reads them,
        (2, n_steps, n_rows, proj).
    RETURNS (tuple[Tensor, State]): The outputs of the top layer, (2, n_steps, n_rows,
        proj), and the last states.
    """

    def run_pair(
        pair: Sequence[ProjectedLSTM], x: Tensor, start: LayerState
    ) -> tuple[Tensor, LayerState]:
        out, cells = run_stacked_layer(
            stack_weights(pair), x, start, keep, compiled=compiled
        )
        return out, (out[:, -1].detach(), cells[:, -1])

    outputs = run_stack(
        zip(*bilm.directions),
        x,
        zip(state.h.unbind(1), state.c.unbind(1)),
        run_pair,
        skip_connections=bilm.config.lstm.skip_connections,
        dropout=dropout,
    )
    layers, last = zip(*outputs)
    h, c = zip(*last)
    return layers[-1], State(torch.stack(h, 1), torch.stack(c, 1))


def run_in_threads(
    bilm: BiLM,
    window: "Window",
    vectors: Tensor,
    state: State,
    dropout: "Dropout",
    samples: Sequence[Sample | None],
    loss_scale: float | None,
) -> Directions:
    """Run each direction in a thread of its own.

    vectors (Tensor): The vectors of distinct words, (n_words, proj).
    samples (Sequence[Sample | None]): For each direction, the result of draw_sample.
    loss_scale (float | None): As for train_step. None computes only the gradients of
        the softmax.
    """
    tasks = [
        partial(
            _direction, bilm, window, vectors, state, dropout, d, sample, loss_scale
        )
        for d, sample in enumerate(samples)
    ]
    first, second = side_by_side(tasks, parallel=True)
    d_vectors = vectors
    if loss_scale is not None:
        d_vectors = first.d_vectors + second.d_vectors
    return Directions(
        [first.head, second.head],
        d_vectors,
        {**first.layers, **second.layers},
        State.stack([first.states, second.states]),
    )


class _Direction(NamedTuple):
    head: HeadResult
    d_vectors: Tensor
    layers: dict[str, Gradient]
    states: list[LayerState]


def _direction(
    bilm: BiLM,
    window: "Window",
    vectors: Tensor,
    state: State,
    dropout: "Dropout",
    d: int,
    sample: Sample | None,
    loss_scale: float | None,
) -> _Direction:
    """Run one direction, forward and backward; arguments as for run_in_threads.

    d (int): The direction: 0 forward, 1 backward.
    """
    frozen = loss_scale is None
    with torch.set_grad_enabled(not frozen):
        # Each direction computes its own gradients: one backward pass for both would
        # run in a single thread.
        vectors = vectors.requires_grad_(not frozen)
        # Unlike indexing, F.embedding adds up gradients in a fixed order.
        x = F.embedding(window.tokens[d], vectors)  # (n_steps, n_rows, proj)
        drop = partial(dropout, direction=d)
        top, last = run_direction(bilm, d, x, state, window.keep, dropout=drop)
        hidden = drop(top).flatten(0, 1)  # (n_steps * n_rows, proj)
    head = _run_head(bilm, hidden, window.targets[d], sample)
    grads: dict[str, Gradient] = {}
    d_vectors = vectors
    if loss_scale is not None:
        named = _named_weights(bilm, d)
        d_hidden = head.d_hidden * loss_scale
        d_vectors, grads = _backward(hidden, d_hidden, vectors, named)
    return _Direction(head, d_vectors, grads, last)


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


def _run_head(
    bilm: BiLM, hidden: Tensor, targets: Tensor, sample: Sample | None
) -> HeadResult:
    """Compute the softmax of one direction and its gradients.

    hidden (Tensor): The outputs of the LSTMs, (n, proj).
    targets (Tensor): The words to predict, (n_steps, n_rows).
    """
    assert bilm.softmax is not None
    return loss_and_gradients(
        bilm.softmax,
        hidden.detach().to(bilm.dtype),
        targets.flatten(),
        sample,
        # Do not use float16, which would lose small probabilities.
        torch.bfloat16 if hidden.dtype == torch.bfloat16 else None,
    )


def _named_weights(bilm: BiLM, d: int) -> dict[str, Tensor]:
    """Return the weights of the LSTMs of one direction, by their names."""
    return {
        f"{ROOTS[d]}.{j}.{name}": weight
        for j, layer in enumerate(bilm.directions[d])
        for name, weight in layer.named_parameters()
    }
