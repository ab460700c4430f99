"""One LSTM layer of both directions, for GPUs. There the time of a step is mostly that
of launching kernels, so both directions share every operation, and as much as possible
is computed for all steps at once. Computes the same as two layers of lstm_backward.py.

D is 2, the number of directions; direction 0 is forward, direction 1 backward."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from ..layers import ProjectedLSTM
from ..state import LayerState

Clips = tuple[float | None, float | None]  # of the cell and of the projection
aten = torch.ops.aten


class Weights(NamedTuple):
    """The weights of a layer of both directions: weight (D, n_in + proj, 4 * dim), bias
    (D, 4 * dim) with the forget bias, projection (D, dim, proj) or None."""

    weight: Tensor
    bias: Tensor
    projection: Tensor | None
    clips: Clips


def stack_weights(layers: Sequence[ProjectedLSTM]) -> Weights:
    """Copy the weights of a layer of both directions, with gradients."""
    first = layers[0]
    projection = None
    if first.projection is not None:
        projection = torch.stack([cast(Tensor, layer.projection) for layer in layers])
    forget = first.bias.new_zeros(4, first.dim)
    forget[2] = first.forget_bias
    return Weights(
        torch.stack([layer.weight for layer in layers]),
        torch.stack([layer.bias for layer in layers]) + forget.flatten(),
        projection,
        (first.cell_clip, first.proj_clip),
    )


def run_stacked_layer(
    weights: Weights,
    x: Tensor,
    state: LayerState,
    keep: Tensor | None = None,
    *,
    compiled: bool = False,
) -> tuple[Tensor, Tensor]:
    """Run a layer of both directions over streams of text, one stream per row.

    x (Tensor): Inputs, in the order in which each direction reads them, (D, n_steps,
        n_rows, n_in).
    state (LayerState): h (D, n_rows, proj) and c (D, n_rows, dim) to start from. They
        get no gradient.
    keep (Tensor | None): 0 where a row forgets its state before a step and 1
        elsewhere, (n_steps, n_rows, 1); None if no row ever does.
    compiled (bool): Run the steps as one program that torch.compile makes.
    RETURNS (tuple[Tensor, Tensor]): Outputs (D, n_steps, n_rows, proj) and the cells
        after each step (D, n_steps, n_rows, dim), which have no gradient.
    """
    h, c = state
    # As in lstm_backward.py: products in the dtype of the inputs, the rest in float32.
    wide = torch.promote_types(x.dtype, torch.float32)
    weight, bias, projection, clips = weights
    return StackedLSTMFunction.apply(
        x,
        weight.to(x.dtype),
        bias.to(wide),
        None if projection is None else projection.to(x.dtype),
        h.to(x.dtype),
        c.to(wide),
        None if keep is None else keep.to(wide),
        clips,
        compiled,
    )


class StackedLSTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        h: Tensor,
        c: Tensor,
        keep: Tensor | None,
        clips: Clips,
        compiled: bool,
    ) -> tuple[Tensor, Tensor]:
        train = any(ctx.needs_input_grad)
        n_in, dim = x.shape[-1], c.shape[-1]
        flat = x.flatten(1, 2)
        # The product with x does not depend on the state: compute it for all steps.
        if x.dtype == bias.dtype:
            from_x = torch.baddbmm(bias[:, None], flat, weight[:, :n_in])
            later_bias = None
        else:
            from_x, later_bias = flat @ weight[:, :n_in], bias[:, None]
        from_x = from_x.view(*x.shape[:3], -1)
        if keep is not None:
            # A gate of sigmoid(-inf) = 0 forgets the cell.
            from_x[..., 2 * dim : 3 * dim].add_(keep.log())
        steps = _choose(forward_steps, compiled)(
            from_x, later_bias, weight[:, n_in:], projection, h, c, keep, clips, train
        )
        if train:
            ctx.save_for_backward(x, weight, projection, keep, *steps)
            ctx.clips, ctx.compiled = clips, compiled
        cells = steps.cells[:, 1:]
        ctx.mark_non_differentiable(cells)
        return steps.out, cells

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, _: Tensor) -> Any:
        x, weight, projection, keep, *saved = ctx.saved_tensors
        steps, n_in = Steps(*saved), x.shape[-1]
        cell_clip, proj_clip = ctx.clips
        d_gates, d_h = _choose(backward_steps, ctx.compiled)(
            d_out.to(x.dtype),
            weight[:, n_in:].transpose(1, 2),
            None if projection is None else projection.transpose(1, 2),
            keep,
            steps,
            # Round the limits, so that clipped values are found equal to them.
            (_round(cell_clip, steps.cells), _round(proj_clip, steps.out)),
        )
        flat = d_gates.flatten(3).flatten(1, 2).to(x.dtype)  # (D, n, 4 * dim)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = (flat @ weight[:, :n_in].transpose(1, 2)).view_as(x)
        inputs = torch.cat([x, steps.before_h], -1).flatten(1, 2)
        d_weight = inputs.transpose(1, 2) @ flat
        d_projection = None
        if projection is not None:
            hidden = steps.hidden.flatten(1, 2)
            d_projection = hidden.transpose(1, 2) @ d_h.flatten(1, 2)
        d_bias = d_gates.sum((1, 2)).flatten(1)
        return (d_x, d_weight, d_bias, d_projection, *(None,) * 5)


class Steps(NamedTuple):
    """What the steps of a layer compute. Without training, only cells and out are
    complete.

    gates: i, candidate, f and o after their nonlinearities, (D, n_steps, n_rows,
        4 * dim).
    before_h: h before each step, (D, n_steps, n_rows, proj).
    cells: c before the first and after each step, (D, n_steps + 1, n_rows, dim).
    hidden: h before the projection, (D, n_steps, n_rows, dim).
    out: h after each step, (D, n_steps, n_rows, proj).
    """

    gates: Tensor
    before_h: Tensor
    cells: Tensor
    hidden: Tensor
    out: Tensor


def forward_steps(
    from_x: Tensor,
    bias: Tensor | None,
    recurrent: Tensor,
    projection: Tensor | None,
    h: Tensor,
    c: Tensor,
    keep: Tensor | None,
    clips: Clips,
    train: bool,
) -> Steps:
    """Run all steps of a layer.

    from_x (Tensor): What the inputs add to the gates, (D, n_steps, n_rows, 4 * dim).
        It is overwritten.
    bias (Tensor | None): What to add to them in a wider dtype, (D, 1, 4 * dim).
    recurrent (Tensor): The weights of h, (D, proj, 4 * dim).
    """
    dim = c.shape[-1]
    cell_clip, proj_clip = clips
    gates: list[Tensor] = []
    before_h: list[Tensor] = []
    hidden: list[Tensor] = []
    out: list[Tensor] = []
    cells = [c]
    keep = None if keep is None else keep.to(h.dtype)
    for t in range(from_x.shape[1]):
        if keep is not None:
            h = h * keep[t]
        total = from_x[:, t].baddbmm_(h, recurrent)
        if bias is not None:
            total = total + bias
        i, j, f_and_o = total.split([dim, dim, 2 * dim], -1)
        f, o = f_and_o.sigmoid_().chunk(2, -1)
        c = (c * f).addcmul_(i.sigmoid_(), j.tanh_())
        if cell_clip is not None:
            c.clamp_(-cell_clip, cell_clip)
        cells.append(c)
        y = c.tanh().mul_(o).to(h.dtype)
        if train:
            gates.append(total)
            before_h.append(h)
            hidden.append(y)
        h = y
        if projection is not None:
            h = y @ projection
            if proj_clip is not None:
                h.clamp_(-proj_clip, proj_clip)
        out.append(h)
    outputs = torch.stack(out, 1)
    return Steps(
        torch.stack(gates, 1) if train and bias is not None else from_x,
        torch.stack(before_h, 1) if train else h,
        torch.stack(cells, 1),
        outputs if projection is None or not train else torch.stack(hidden, 1),
        outputs,
    )


def backward_steps(
    d_out: Tensor,
    recurrent: Tensor,
    projection: Tensor | None,
    keep: Tensor | None,
    steps: Steps,
    clips: Clips,
) -> tuple[Tensor, Tensor]:
    """Run all steps of a layer backward.

    d_out (Tensor): The gradients of the outputs, (D, n_steps, n_rows, proj).
    recurrent (Tensor): The transposed weights of h, (D, 4 * dim, proj).
    projection (Tensor | None): The transposed projection, (D, proj, dim).
    RETURNS (tuple[Tensor, Tensor]): The gradients of the gates before their
        nonlinearities, (D, n_steps, n_rows, 4, dim), and those of h before it is
        clipped, (D, n_steps, n_rows, proj).
    """
    _, proj_clip = clips
    d_gates, from_h, from_c = _factors(steps, clips[0])
    d_h = d_out.clone(memory_format=torch.contiguous_format)
    keep = None if keep is None else keep.to(d_h.dtype)
    found: list[Tensor] = []
    d_c = torch.zeros_like(from_h[:, 0])
    for t in range(d_out.shape[1] - 1, -1, -1):
        d = d_h[:, t]
        if proj_clip is not None:
            d = aten.hardtanh_backward(d, steps.out[:, t], -proj_clip, proj_clip)
        found.append(d)
        if projection is not None:
            d = d @ projection
        d = d.to(d_c.dtype)
        d_c = (d_c * from_c[:, t]).addcmul_(d, from_h[:, t])
        d_gates[:, t, :, :3].mul_(d_c[:, :, None])
        d_gates[:, t, :, 3].mul_(d)
        if t:
            flat = d_gates[:, t].flatten(2).to(d_h.dtype)
            if keep is None:
                d_h[:, t - 1].baddbmm_(flat, recurrent)
            else:
                d_h[:, t - 1].addcmul_(flat @ recurrent, keep[t])
    return d_gates, torch.stack(found[::-1], 1)


def _factors(steps: Steps, cell_clip: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """Compute everything of the backward pass that does not depend on gradients.

    RETURNS (tuple[Tensor, Tensor, Tensor]): What to multiply the gradients by of c (for
        i, candidate and f) and of h before the projection (for o), (D, n_steps, n_rows,
        4, dim); that of h, to get its part of the gradient of c before it is clipped;
        and that of the next c, to get the other part, (D, n_steps, n_rows, dim) each.
    """
    i, j, f, o = steps.gates.chunk(4, -1)
    before, after = steps.cells[:, :-1], steps.cells[:, 1:]
    tanh_c = after.tanh()
    gates = torch.stack(
        [
            aten.sigmoid_backward(j, i),
            aten.tanh_backward(i, j),
            aten.sigmoid_backward(before, f),
            aten.sigmoid_backward(tanh_c, o),
        ],
        -2,
    )
    from_h = aten.tanh_backward(o, tanh_c)
    from_c = torch.cat([f[:, 1:], torch.zeros_like(f[:, :1])], 1)
    if cell_clip is not None:
        from_h = aten.hardtanh_backward(from_h, after, -cell_clip, cell_clip)
        from_c = aten.hardtanh_backward(from_c, after, -cell_clip, cell_clip)
    return gates, from_h, from_c


def _round(limit: float | None, like: Tensor) -> float | None:
    return None if limit is None else float(torch.tensor(limit, dtype=like.dtype))


def _choose(function: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return compile_steps(function) if compiled else function


@cache
def compile_steps(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for the shapes that it is called with. In a training, all
    windows and layers have the same shapes."""
    return torch.compile(function, dynamic=False)
