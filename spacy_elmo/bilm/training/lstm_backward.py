"""One LSTM layer of one direction, for training. Computes the same as ProjectedLSTM,
with a hand-written backward pass. In it, only the products that pass gradients from
step to step are computed per step; all others are computed for all steps at once."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..engines.kernels import PackedKernel, gate_scale
from ..layers import ProjectedLSTM
from ..state import LayerState
from .matmul import matmul, step_kernel, use_onednn


def run_layer(
    layer: ProjectedLSTM, x: Tensor, state: LayerState, keep: Tensor | None
) -> tuple[Tensor, LayerState]:
    """Run a layer over streams of text, one stream per row.

    x (Tensor): Inputs, (n_steps, n_rows, n_in).
    state (LayerState): h (n_rows, proj) and c (n_rows, dim) to start from. They get no
        gradient.
    keep (Tensor | None): 0 where a row forgets its state before a step and 1
        elsewhere, (n_steps, n_rows, 1); None if no row ever does.
    RETURNS (tuple[Tensor, LayerState]): Outputs (n_steps, n_rows, proj) and the last
        state, which has no gradient.
    """
    h, c = state
    clips = (layer.cell_clip, layer.proj_clip)
    # Matrix products are computed in the dtype of the inputs, which may have fewer bits
    # than that of the weights. Everything else is computed in float32 at least.
    wide = torch.promote_types(x.dtype, torch.float32)
    out, last_h, last_c = LSTMFunction.apply(
        x,
        layer.weight.to(x.dtype),
        layer.bias.to(wide),
        None if layer.projection is None else layer.projection.to(x.dtype),
        h.to(x.dtype),
        c.to(wide),
        None if keep is None else keep.to(wide),
        layer.forget_bias,
        clips,
    )
    return out, (last_h, last_c)


class LSTMFunction(torch.autograd.Function):
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
        forget_bias: float,
        clips: tuple[float | None, float | None],
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_steps, n_rows, n_in = x.shape
        dim = weight.shape[1] // 4
        cell_clip, proj_clip = clips
        bias = bias.clone()
        bias[2 * dim : 3 * dim] += forget_bias
        # x and the earlier h of each step, with h = 0 where a row forgets its state.
        inputs = x.new_empty(n_steps, n_rows, len(weight))
        inputs[:, :, :n_in] = x
        activate = _gates(inputs, weight, bias, n_in)
        project = None
        if projection is not None:
            project = step_kernel(projection, n_rows, limit=proj_clip)
        gates: list[Tensor] = []
        before_c = c.new_empty(n_steps, n_rows, dim)  # c before each step
        cells = c.new_empty(n_steps, n_rows, dim)
        tanh_c = c.new_empty(n_steps, n_rows, dim)
        hidden = x.new_empty(n_steps, n_rows, dim)  # before the projection
        out = x.new_empty(n_steps, n_rows, h.shape[1]) if project else hidden
        for t in range(n_steps):
            if keep is None:
                inputs[t, :, n_in:], before_c[t] = h, c
            else:
                torch.mul(h, keep[t], out=inputs[t, :, n_in:])
                torch.mul(c, keep[t], out=before_c[t])
            gates.append(activate(t))
            i, j, f, o = gates[t].chunk(4, 1)
            _to_tanh(j)
            c = torch.mul(before_c[t], f, out=cells[t]).addcmul_(i, j)
            if cell_clip is not None:
                c.clamp_(-cell_clip, cell_clip)
            _to_tanh(torch.mul(c, 2, out=tanh_c[t]).sigmoid_())
            h = torch.mul(o, tanh_c[t], out=hidden[t])
            if project is not None:
                h = out[t].copy_(project(h))
        ctx.save_for_backward(
            inputs, weight, projection, before_c, cells, tanh_c, hidden, out, *gates
        )
        ctx.n_in, ctx.keep, ctx.clips = n_in, keep, clips
        last = h.clone(), c.clone()
        ctx.mark_non_differentiable(*last)
        return (out, *last)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, *_: Tensor) -> Any:
        inputs, weight, projection, before_c, cells, tanh_c, hidden, out, *gates = (
            ctx.saved_tensors
        )
        keep, (cell_clip, proj_clip) = ctx.keep, ctx.clips
        n_steps, n_rows, _ = inputs.shape
        n_in, dim = ctx.n_in, weight.shape[1] // 4
        back = step_kernel(weight[n_in:].t(), n_rows)
        unproject = None
        if projection is not None:
            unproject = step_kernel(projection.t(), n_rows)
        d_gates = inputs.new_empty(n_steps, n_rows, 4 * dim)
        wide = gates[0].dtype
        # Gradients of the outputs of all steps; those from later steps are added below.
        d_h = d_out.to(inputs.dtype, memory_format=torch.contiguous_format, copy=True)
        d_c = torch.zeros_like(cells[0])
        for t in range(n_steps - 1, -1, -1):
            d = d_h[t]
            if unproject is not None:
                if proj_clip is not None:
                    d = _clip_backward(d, out[t], proj_clip)
                    d_h[t] = d
                d = unproject(d)  # (n_rows, dim)
            d = d.to(wide)
            i, j, f, o = gates[t].chunk(4, 1)
            d_g = d_gates[t]
            if d_g.dtype != wide:
                d_g = torch.empty_like(gates[t])
            d_i, d_j, d_f, d_o = d_g.chunk(4, 1)
            _sigmoid_backward(d * tanh_c[t], o, d_o)
            d_c += torch.ops.aten.tanh_backward(d * o, tanh_c[t])
            if cell_clip is not None:
                d_c = _clip_backward(d_c, cells[t], cell_clip)
            _sigmoid_backward(d_c * j, i, d_i)
            torch.ops.aten.tanh_backward.grad_input(d_c * i, j, grad_input=d_j)
            _sigmoid_backward(d_c * before_c[t], f, d_f)
            if d_g.dtype != d_gates.dtype:
                d_gates[t] = d_g
            d_c *= f
            if t:
                earlier = back(d_gates[t])
                if keep is not None:
                    earlier *= keep[t]
                    d_c *= keep[t]
                d_h[t - 1] += earlier
        flat = d_gates.view(-1, 4 * dim)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = matmul(flat, weight[:n_in].t()).view(n_steps, n_rows, n_in)
        d_weight = matmul(inputs.flatten(0, 1).t(), flat)
        d_projection = None
        if projection is not None:
            d_projection = matmul(d_h.flatten(0, 1).t(), hidden.flatten(0, 1)).t()
        d_bias = (flat.new_ones(1, len(flat)) @ flat)[0].to(wide)
        none = (None,) * 5
        return (d_x, d_weight, d_bias, d_projection, *none)


def _gates(
    inputs: Tensor, weight: Tensor, bias: Tensor, n_in: int
) -> Callable[[int], Tensor]:
    """Make a function that computes the gates of a step.

    inputs (Tensor): x and h of all steps, (n_steps, n_rows, n_in + proj). The h of a
        step may be filled in later, but before the function is called for that step.
    weight (Tensor): (n_in + proj, 4 * dim).
    bias (Tensor): (4 * dim,), with the forget bias.
    RETURNS (Callable[[int], Tensor]): Maps t to sigmoid(i), sigmoid(2 * candidate),
        sigmoid(f), sigmoid(o), (n_rows, 4 * dim).
    """
    scale = gate_scale(bias)
    if use_onednn(inputs[0], weight):
        kernel = PackedKernel(weight, bias, scale=scale, sigmoid=True)
        return lambda t: kernel(inputs[t])
    n_steps, n_rows, _ = inputs.shape
    # The product with x does not depend on the state: compute it for all steps.
    x = inputs[:, :, :n_in].reshape(-1, n_in)
    from_x = (x @ weight[:n_in]).view(n_steps, n_rows, -1)

    def activate(t: int) -> Tensor:
        total = from_x[t].addmm_(inputs[t, :, n_in:], weight[n_in:])
        total = total.to(bias.dtype)  # because adding different dtypes is slow
        total += bias
        return total.mul_(scale).sigmoid_()

    return activate


def _to_tanh(y: Tensor) -> None:
    """Convert sigmoid(2 x) to tanh(x), in place. torch's own tanh takes several times
    as long as its sigmoid."""
    y.mul_(2).sub_(1)


def _clip_backward(d: Tensor, y: Tensor, limit: float) -> Tensor:
    """Set the gradient d to 0 where the output y was clipped."""
    # Round the limit like y, so that clipped values are found equal to it.
    limit = float(torch.tensor(limit, dtype=y.dtype))
    return torch.ops.aten.hardtanh_backward(d, y, -limit, limit)


def _sigmoid_backward(d: Tensor, y: Tensor, out: Tensor) -> None:
    torch.ops.aten.sigmoid_backward.grad_input(d, y, grad_input=out)
