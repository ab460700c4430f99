"""Run inputs through a stack of LSTM layers: the one loop that all models, engines and
training steps share."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

ArrayT = TypeVar("ArrayT")
LayerT = TypeVar("LayerT")
StateT = TypeVar("StateT")


def run_stack(
    layers: Iterable[LayerT],
    x: ArrayT,
    states: Iterable[StateT],
    run_layer: Callable[[LayerT, ArrayT, StateT], tuple[ArrayT, StateT]],
    *,
    skip_connections: bool,
    dropout: Callable[[ArrayT], ArrayT] | None = None,
) -> Iterator[tuple[ArrayT, StateT]]:
    """Run the layers of a stack one after another.

    layers (Iterable): The layers, from the bottom to the top.
    x (Array): Inputs of the first layer, in any layout that run_layer understands.
    states (Iterable): The state that each layer starts from.
    run_layer (Callable): Runs one layer: takes the layer, its inputs and its state,
        returns its outputs and its last state.
    skip_connections (bool): Add the inputs of each layer but the first to its outputs.
    dropout (Callable | None): Applied to the inputs of each layer.
    YIELDS (tuple): The outputs of each layer, after its skip connection, and its last
        state.
    """
    for j, (layer, state) in enumerate(zip(layers, states, strict=True)):
        if dropout is not None:
            x = dropout(x)
        y, last = run_layer(layer, x, state)
        x = x + y if j and skip_connections else y  # type: ignore[operator]
        yield x, last
