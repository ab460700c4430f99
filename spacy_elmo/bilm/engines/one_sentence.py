"""Small LSTMs over one sentence at a time. Here, calling torch takes as long as the
computation itself. So each call computes a step of both directions."""

import torch
from torch import Tensor

from ..layers import ProjectedLSTM
from .kernels import fast_kernel, gate_scale

# For how many steps of a sentence the product with the inputs is computed at a time.
# More steps would need more memory.
STEPS_AT_A_TIME = 256


class BothDirectionsLSTM:
    """One layer of both directions, with a stacked copy of their weights."""

    def __init__(self, forward: ProjectedLSTM, backward: ProjectedLSTM) -> None:
        pair = (forward, backward)
        dim = forward.dim
        self.dim = dim
        self.cell_clip = forward.cell_clip
        self.proj_clip = forward.proj_clip
        weight = torch.stack([layer.weight.detach() for layer in pair])
        bias = torch.stack([layer.bias.detach() for layer in pair])
        bias[:, 2 * dim : 3 * dim] += forward.forget_bias
        scale = gate_scale(bias[0])
        weight *= scale
        bias *= scale
        n_in = forward.n_in
        self.inputs = [fast_kernel(w[:n_in], b) for w, b in zip(weight, bias)]
        self.recurrent = weight[:, n_in:].contiguous()  # (2, proj, 4 * dim)
        self.projection: Tensor | None = None
        if forward.projection is not None:
            self.projection = torch.stack(
                [layer.projection.detach() for layer in pair]  # type: ignore[union-attr]
            )

    def run(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        """Run the layer over one sentence.

        x (Tensor): Inputs of each direction, in the order in which it reads them,
            (2, n_tokens, n_in).
        h, c (Tensor): The states (2, proj) and (2, dim), updated in place.
        RETURNS (Tensor): Outputs, (2, n_tokens, proj).
        """
        out = x.new_empty(x.shape[1], 2, 1, h.shape[1])
        last, cell = h[:, None].clone(), c[:, None].clone()
        for some_x, some_out in zip(
            x.split(STEPS_AT_A_TIME, 1), out.split(STEPS_AT_A_TIME)
        ):
            last = self._steps(some_x, some_out, last, cell)
        h.copy_(last[:, 0])
        c.copy_(cell[:, 0])
        return out[:, :, 0].transpose(0, 1)

    def _steps(self, x: Tensor, out: Tensor, last: Tensor, c: Tensor) -> Tensor:
        """Run n steps.

        x (Tensor): Inputs, (2, n, n_in).
        out (Tensor): Where to write the outputs, (n, 2, 1, proj).
        last (Tensor): The h to start from, (2, 1, proj).
        c (Tensor): The cells, (2, 1, dim), updated in place.
        RETURNS (Tensor): The last h, (2, 1, proj).
        """
        from_inputs = [kernel(rows) for kernel, rows in zip(self.inputs, x)]
        gates = torch.stack(from_inputs, 1)[:, :, None]  # (n, 2, 1, 4 * dim)
        parts = (gates, *gates.split(self.dim, 3), out)
        for row, i, candidate, f, o, new in zip(*(part.unbind(0) for part in parts)):
            row.baddbmm_(last, self.recurrent).sigmoid_()
            c.mul_(f).addcmul_(i, candidate, value=2).sub_(i)
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            if self.projection is None:
                torch.mul(torch.tanh(c), o, out=new)
            else:
                torch.bmm(torch.tanh(c).mul_(o), self.projection, out=new)
                if self.proj_clip is not None:
                    new.clamp_(-self.proj_clip, self.proj_clip)
            last = new
        return last
