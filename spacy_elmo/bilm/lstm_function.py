"""A layer of one direction for training: what ProjectedLSTM computes, with a backward
pass written by hand so that all products but the recurrent ones are large."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from .layers import ProjectedLSTM


def run_layer(
    layer: ProjectedLSTM, x: Tensor, h: Tensor, c: Tensor, keep: Optional[Tensor]
) -> Tuple[Tensor, Tensor, Tensor]:
    """Run a layer over streams.

    x (Tensor): Inputs, (n_steps, n_rows, n_in).
    h, c (Tensor): States to start from, (n_rows, proj) and (n_rows, dim). They get no
        gradient.
    keep (Optional[Tensor]): 0 where a row forgets its state before a step and 1
        elsewhere, (n_steps, n_rows, 1); None if no row ever does.
    RETURNS (Tuple[Tensor, Tensor, Tensor]): Outputs (n_steps, n_rows, proj), and the
        last states, without gradients.
    """
    clips = (layer.cell_clip, layer.proj_clip)
    # Products are computed in the type of the inputs, which may be a shorter one than
    # the weights', everything else in float32 at least.
    wide = torch.promote_types(x.dtype, torch.float32)
    return LSTMFunction.apply(
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


class LSTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection: Optional[Tensor],
        h: Tensor,
        c: Tensor,
        keep: Optional[Tensor],
        forget_bias: float,
        clips: Tuple[Optional[float], Optional[float]],
    ) -> Tuple[Tensor, Tensor, Tensor]:
        n_steps, n_rows, n_in = x.shape
        dim = weight.shape[1] // 4
        cell_clip, proj_clip = clips
        bias = bias.clone()
        bias[2 * dim : 3 * dim] += forget_bias
        recurrent = weight[n_in:]
        products = (x.reshape(-1, n_in) @ weight[:n_in]).view(n_steps, n_rows, -1)
        # In one type, the gates take the place of the products.
        gates = products if x.dtype == c.dtype else c.new_empty(products.shape)
        before_h = x.new_empty(n_steps, n_rows, h.shape[1])  # after forgetting
        before_c = c.new_empty(n_steps, n_rows, dim)
        cells = c.new_empty(n_steps, n_rows, dim)
        tanh_c = c.new_empty(n_steps, n_rows, dim)
        hidden = x.new_empty(n_steps, n_rows, dim)  # before the projection
        out = hidden if projection is None else torch.empty_like(before_h)
        for t in range(n_steps):
            if keep is None:
                before_h[t], before_c[t] = h, c
            else:
                torch.mul(h, keep[t], out=before_h[t])
                torch.mul(c, keep[t], out=before_c[t])
            products[t].addmm_(before_h[t], recurrent)
            if gates is not products:
                gates[t] = products[t]  # apart: adding different types is slow
            g = gates[t].add_(bias)
            i, j, f, o = g.chunk(4, 1)
            j *= 2
            g.sigmoid_()
            _to_tanh(j)
            c = torch.mul(before_c[t], f, out=cells[t]).addcmul_(i, j)
            if cell_clip is not None:
                c.clamp_(-cell_clip, cell_clip)
            _to_tanh(torch.mul(c, 2, out=tanh_c[t]).sigmoid_())
            h = torch.mul(o, tanh_c[t], out=hidden[t])
            if projection is not None:
                h = torch.mm(h, projection, out=out[t])
                if proj_clip is not None:
                    h.clamp_(-proj_clip, proj_clip)
        ctx.save_for_backward(
            x, weight, projection, gates, before_h, before_c, cells, tanh_c, hidden, out
        )
        ctx.keep, ctx.clips = keep, clips
        last = h.clone(), c.clone()
        ctx.mark_non_differentiable(*last)
        return (out, *last)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, *_: Tensor) -> Any:
        x, weight, projection, gates, before_h, before_c, cells, tanh_c, hidden, out = (
            ctx.saved_tensors
        )
        keep, (cell_clip, proj_clip) = ctx.keep, ctx.clips
        n_steps, n_rows, n_in = x.shape
        dim = weight.shape[1] // 4
        recurrent = weight[n_in:].t()
        d_gates = x.new_empty(gates.shape)
        d_g = torch.empty_like(gates[0])  # of one step, in the type of the gates
        d_i, d_j, d_f, d_o = d_g.chunk(4, 1)
        # Of all steps, what flows back in time to be added.
        d_h = d_out.to(x.dtype, memory_format=torch.contiguous_format, copy=True)
        d_c = torch.zeros_like(cells[0])
        for t in range(n_steps - 1, -1, -1):
            d = d_h[t]
            if projection is not None:
                if proj_clip is not None:
                    d.masked_fill_(out[t].abs() >= proj_clip, 0)
                d = d @ projection.t()  # (n_rows, dim)
            d = d.to(d_c.dtype)
            i, j, f, o = gates[t].chunk(4, 1)
            _sigmoid_backward(d * tanh_c[t], o, d_o)
            d_c += torch.ops.aten.tanh_backward(d * o, tanh_c[t])
            if cell_clip is not None:
                d_c.masked_fill_(cells[t].abs() >= cell_clip, 0)
            _sigmoid_backward(d_c * j, i, d_i)
            torch.ops.aten.tanh_backward.grad_input(d_c * i, j, grad_input=d_j)
            _sigmoid_backward(d_c * before_c[t], f, d_f)
            d_gates[t] = d_g
            d_c *= f
            if t:
                earlier = d_gates[t] @ recurrent
                if keep is not None:
                    earlier *= keep[t]
                    d_c *= keep[t]
                d_h[t - 1] += earlier
        flat = d_gates.view(-1, 4 * dim)
        d_x = (flat @ weight[:n_in].t()).view_as(x) if ctx.needs_input_grad[0] else None
        inputs = torch.cat([x, before_h], 2).view(n_steps * n_rows, -1)
        d_projection = None
        if projection is not None:
            d_projection = hidden.view(-1, dim).t() @ d_h.view(n_steps * n_rows, -1)
        d_bias = (flat.new_ones(1, len(flat)) @ flat)[0].to(d_c.dtype)
        none = (None,) * 5
        return (d_x, inputs.t() @ flat, d_bias, d_projection, *none)


def _to_tanh(y: Tensor) -> None:
    """From sigmoid(2 x) to tanh(x), in place: torch's own tanh takes several times as
    long as its sigmoid."""
    y.mul_(2).sub_(1)


def _sigmoid_backward(d: Tensor, y: Tensor, out: Tensor) -> None:
    torch.ops.aten.sigmoid_backward.grad_input(d, y, grad_input=out)
