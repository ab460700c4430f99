"""A bidirectional LSTM over the tokens of each doc, as in the paper's task models.

It needs no torch, also for training: the arrays are those of Thinc's current ops. Each
doc is read on its own, from zero states, whatever other docs are in the batch. Both
directions run in one loop: they have the same lengths, and the backward one sees the
tokens of each doc in reverse.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from thinc.api import Model, Ops
from thinc.initializers import glorot_uniform_init
from thinc.types import Floats2d

BiLSTMModelT = Model[list[Floats2d], list[Floats2d]]
# Forward and backward.
N_DIRECTIONS = 2


class Packing(NamedTuple):
    """The order in which the LSTMs read tokens: the first of all docs, then the second,
    and so on, longer docs first.

    order (Any): The number of each token in the concatenated docs, (2, n_tokens): for
        the forward and for the backward direction.
    ranks (Any): The place of the doc of each packed token among the sorted docs,
        (n_tokens,).
    active (list[int]): How many docs have a token at each step.
    starts (list[int]): Where the tokens of each step begin.
    """

    order: Any
    ranks: Any
    active: list[int]
    starts: list[int]


class Memory(NamedTuple):
    """What the backward pass needs, as packed arrays of both directions.

    gates: (2, n_tokens, 4 * dim) after their nonlinearities.
    cells, squashed, outputs: (2, n_tokens, dim); squashed is tanh(cells).
    """

    gates: Any
    cells: Any
    squashed: Any
    outputs: Any


def BiLSTMEncoder(
    *, width: int, depth: int = 2, dropout: float | None = None
) -> BiLSTMModelT:
    """Build an encoder that adds context by bidirectional LSTMs. It can be used where
    spaCy takes an encoder, such as spacy.MaxoutWindowEncoder.v2.

    width (int): The width of the input and the output; half of it for each direction.
    depth (int): The number of layers.
    dropout (float | None): The dropout rate of the input of each layer, with one mask
        for all tokens of a doc; None for the dropout rate of the training.
    """
    if width < 2 or width % 2:
        raise ValueError(f"BiLSTMEncoder: width is {width}; expected an even number")
    if depth < 1:
        raise ValueError(f"BiLSTMEncoder: depth is {depth}; expected 1 or more")
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(
            f"BiLSTMEncoder: dropout is {dropout}; expected 0 or more and less than 1"
        )
    return Model(
        "bilstm_encoder",
        forward,
        init=init,
        dims={"nI": width, "nO": width},
        layers=[_make_layer(width) for _ in range(depth)],
        # If "dropout_rate" exists, Thinc and spaCy set it to the rate of the training.
        attrs={"dropout_rate": 0.0} if dropout is None else {"dropout": dropout},
    )


def _make_layer(width: int) -> Model[Any, Any]:
    return Model(
        "bilstm_layer",
        _run_layer,
        init=_init_layer,
        dims={"nI": width, "nO": width},
        params={"inputs": None, "recurrent": None, "bias": None},
    )


def init(model: BiLSTMModelT, X: Any = None, Y: Any = None) -> None:
    for layer in model.layers:
        layer.initialize()


def _init_layer(model: Model, X: Any = None, Y: Any = None) -> None:
    ops, width = model.ops, model.get_dim("nI")
    dim = model.get_dim("nO") // N_DIRECTIONS
    for name, n_rows in (("inputs", width), ("recurrent", dim)):
        # Each gate is a matrix of its own, initialized by its own shape.
        gates = [
            [glorot_uniform_init(ops, (n_rows, dim)) for _ in range(4)]
            for _ in range(N_DIRECTIONS)
        ]
        model.set_param(name, ops.xp.stack([ops.xp.hstack(g) for g in gates]))
    bias = ops.alloc2f(N_DIRECTIONS, 4 * dim)
    bias[:, dim : 2 * dim] = 1  # the forget gate: at first, remember
    model.set_param("bias", bias)


def forward(
    model: BiLSTMModelT, docs: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    ops = model.ops
    lengths = [len(doc) for doc in docs]
    if not any(lengths):
        return docs, lambda gradients: gradients
    packing = pack(ops, lengths)
    x = ops.xp.concatenate(docs)
    rate = model.attrs.get("dropout_rate", model.attrs.get("dropout"))
    masks, backprops = [], []
    for layer in model.layers:
        mask = _make_mask(ops, packing, x.shape[1], rate) if is_train else None
        x = x if mask is None else x * mask
        x, backprop_layer = layer((x, packing), is_train)
        masks.append(mask)
        backprops.append(backprop_layer)

    def backprop(gradients: list[Floats2d]) -> list[Floats2d]:
        d = ops.xp.concatenate(gradients)
        for mask, backprop_layer in zip(reversed(masks), reversed(backprops)):
            d = backprop_layer(d)
            d = d if mask is None else d * mask
        return _split(d, lengths)

    return _split(x, lengths), backprop


def pack(ops: Ops, lengths: Sequence[int]) -> Packing:
    """Return the order in which the tokens of docs of these lengths are read."""
    sizes = np.asarray(lengths)
    first = np.cumsum(sizes) - sizes
    by_length = np.argsort(-sizes, kind="stable")
    active = [int((sizes > step).sum()) for step in range(sizes.max())]
    ranks = np.concatenate([np.arange(n) for n in active])
    steps = np.repeat(np.arange(len(active)), active)
    docs = by_length[ranks]
    forward = first[docs] + steps
    backward = first[docs] + sizes[docs] - 1 - steps
    starts = (np.cumsum(active) - active).tolist()
    order = ops.xp.asarray(np.stack([forward, backward]))
    return Packing(order, ops.xp.asarray(ranks), active, starts)


def _make_mask(ops: Ops, packing: Packing, width: int, rate: float | None) -> Any:
    """Return a mask with one row for each token, the same for all tokens of a doc."""
    if not rate:
        return None
    rows = ops.get_dropout_mask((packing.active[0], width), rate)
    mask = ops.alloc2f(len(packing.ranks), width)
    mask[packing.order[0]] = rows[packing.ranks]
    return mask


def _run_layer(
    model: Model, inputs: tuple[Floats2d, Packing], is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    x, packing = inputs
    ops = model.ops
    weights, recurrent = model.get_param("inputs"), model.get_param("recurrent")
    dim = model.get_dim("nO") // N_DIRECTIONS
    bias: Any = model.get_param("bias")
    packed = x[packing.order]  # (2, n_tokens, nI)
    # The parts of the gates that come from the input need no loop.
    gates = ops.xp.matmul(packed, weights) + bias[:, None]
    memory = _run_steps(ops, gates, recurrent, packing)

    def backprop(d_y: Floats2d) -> Floats2d:
        d_outputs = _part_directions(ops, d_y, packing, dim)
        d_gates = _backprop_steps(ops, d_outputs, memory, recurrent, packing)
        model.inc_grad("inputs", ops.xp.matmul(_turn(packed), d_gates))
        model.inc_grad("bias", d_gates.sum(1))
        later = packing.active[0]  # the first step has no state before it
        before = memory.outputs[:, _find_previous(packing)]
        d_recurrent = ops.xp.matmul(_turn(before), d_gates[:, later:])
        model.inc_grad("recurrent", d_recurrent)
        d_packed = ops.xp.matmul(d_gates, _turn(weights))
        d_x = ops.alloc2f(*x.shape)
        for direction in range(N_DIRECTIONS):
            d_x[packing.order[direction]] += d_packed[direction]
        return d_x

    return _join_directions(ops, memory.outputs, packing), backprop


def _run_steps(ops: Ops, gates: Any, recurrent: Any, packing: Packing) -> Memory:
    """Run both directions over all steps.

    gates: What the inputs add to the gates, (2, n_tokens, 4 * dim); overwritten. In
        this order: input, forget, output, candidate.
    recurrent: (2, dim, 4 * dim).
    """
    xp = ops.xp
    dim = recurrent.shape[1]
    cells = xp.empty((*gates.shape[:2], dim), gates.dtype)
    squashed, outputs = xp.empty_like(cells), xp.empty_like(cells)
    for step, (start, n) in enumerate(zip(packing.starts, packing.active)):
        now = slice(start, start + n)
        gate = gates[:, now]
        if step:
            last = slice(packing.starts[step - 1], packing.starts[step - 1] + n)
            gate += xp.matmul(outputs[:, last], recurrent)
        # sigmoid(x) is (tanh(x / 2) + 1) / 2: one call for all gates.
        gate[..., : 3 * dim] *= 0.5
        xp.tanh(gate, out=gate)
        gate[..., : 3 * dim] += 1
        gate[..., : 3 * dim] *= 0.5
        cells[:, now] = gate[..., :dim] * gate[..., 3 * dim :]
        if step:
            cells[:, now] += gate[..., dim : 2 * dim] * cells[:, last]
        squashed[:, now] = xp.tanh(cells[:, now])
        outputs[:, now] = gate[..., 2 * dim : 3 * dim] * squashed[:, now]
    return Memory(gates, cells, squashed, outputs)


def _backprop_steps(
    ops: Ops, d_outputs: Any, memory: Memory, recurrent: Any, packing: Packing
) -> Any:
    """Return the gradients of the gates before their nonlinearities, (2, n_tokens,
    4 * dim).

    d_outputs: (2, n_tokens, dim).
    """
    xp = ops.xp
    dim, turned = recurrent.shape[1], _turn(recurrent)
    d_gates = xp.empty_like(memory.gates)
    shape = (N_DIRECTIONS, packing.active[0], dim)
    d_h, d_c = xp.zeros(shape, d_gates.dtype), xp.zeros(shape, d_gates.dtype)
    for step in reversed(range(len(packing.active))):
        start, n = packing.starts[step], packing.active[step]
        now = slice(start, start + n)
        i, f, o, g = (memory.gates[:, now, k * dim : (k + 1) * dim] for k in range(4))
        squashed = memory.squashed[:, now]
        d_output = d_outputs[:, now] + d_h[:, :n]
        d_cell = d_c[:, :n] + d_output * o * (1 - squashed**2)
        d_gate = d_gates[:, now]
        d_gate[..., :dim] = d_cell * g * i * (1 - i)
        d_gate[..., 2 * dim : 3 * dim] = d_output * squashed * o * (1 - o)
        d_gate[..., 3 * dim :] = d_cell * i * (1 - g**2)
        if not step:
            d_gate[..., dim : 2 * dim] = 0  # the first step has nothing to forget
            break
        last = slice(packing.starts[step - 1], packing.starts[step - 1] + n)
        d_gate[..., dim : 2 * dim] = d_cell * memory.cells[:, last] * f * (1 - f)
        d_c[:, :n] = d_cell * f
        d_h[:, :n] = xp.matmul(d_gate, turned)
    return d_gates


def _find_previous(packing: Packing) -> Any:
    """Return the place of the packed token before each token after the first step."""
    places = [
        np.arange(start, start + n)
        for start, n in zip(packing.starts, packing.active[1:])
    ]
    return np.concatenate([np.zeros(0, dtype=int), *places])


def _join_directions(ops: Ops, outputs: Any, packing: Packing) -> Floats2d:
    """Return the outputs of both directions side by side, in the order of the docs.

    outputs: (2, n_tokens, dim), packed.
    RETURNS (Floats2d): (n_tokens, 2 * dim).
    """
    dim = outputs.shape[2]
    y = ops.alloc2f(outputs.shape[1], N_DIRECTIONS * dim)
    for direction in range(N_DIRECTIONS):
        columns = slice(direction * dim, (direction + 1) * dim)
        y[packing.order[direction], columns] = outputs[direction]
    return y


def _part_directions(ops: Ops, d_y: Floats2d, packing: Packing, dim: int) -> Any:
    """Undo `_join_directions` for gradients."""
    return ops.xp.stack(
        [
            d_y[packing.order[direction], direction * dim : (direction + 1) * dim]
            for direction in range(N_DIRECTIONS)
        ]
    )


def _turn(matrices: Any) -> Any:
    return matrices.transpose(0, 2, 1)


def _split(array: Any, lengths: Sequence[int]) -> list[Any]:
    ends = np.cumsum(lengths)
    return [array[end - n : end] for n, end in zip(lengths, ends.tolist())]
