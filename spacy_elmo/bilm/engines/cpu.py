"""Inference in float32 on a CPU. Computes the same as the differentiable model, except
for rounding, without autograd and with the weights in a faster layout."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..encoders import ByteEncoder, TokenEncoder
from ..layers import CharCNN, Highway, ProjectedLSTM
from ..stack import run_stack
from ..state import State
from ..training.matmul import matmul
from .kernels import Kernel, fast_kernel, gate_scale, padded_rows
from .one_sentence import STEPS_AT_A_TIME, BothDirectionsLSTM
from .packing import Packing
from .threads import one_thread, side_by_side

# The number of multiplications per step from which on it is faster to run the two
# directions in two threads. Below it, a single sentence takes the path of
# one_sentence.py.
PARALLEL_FROM = 2**22
# The number of multiplications from which on words are encoded with all threads: more
# than the words of a sentence need at the bundled size, about a millisecond of work.
ENCODE_PARALLEL_FROM = 2**26
# Up to this many windows of characters are multiplied at once. With more, the maximum
# is updated position by position, which needs less memory.
FEW_WINDOWS = 512


class FastCNN:
    """A character CNN that applies the filters of all widths in one matrix product.

    pack (bool): Whether to pack the weights of the highways. This is faster, but needs
        a copy of them.
    """

    def __init__(self, cnn: CharCNN, *, pack: bool) -> None:
        char_dim = cnn.embedding.shape[1]
        weight = cnn.embedding.new_zeros(cnn.widest * char_dim, cnn.n_features)
        start = 0
        for (width, number), part in zip(cnn.filters, cnn.weights):
            weight[: width * char_dim, start : start + number] = part
            start += number
        self.cnn = cnn
        self.embedding = cnn.embedding.detach()
        self.n_weights = weight.numel()  # of one window of characters
        self.windows = fast_kernel(weight)
        self.bias = torch.cat(list(cnn.biases))
        self.highways = []
        for highway in cast(Iterable[Highway], cnn.highways):
            weight, bias = highway.weight.detach(), highway.bias.detach()
            kernel = fast_kernel(weight, bias) if pack else _unpacked(weight, bias)
            self.highways.append(kernel)

    def __call__(self, ids: Tensor, max_chars: int) -> Tensor:
        """Map character ids (n_words, length) to features (n_words, n_features)."""
        widest = self.cnn.widest
        n_words, length = ids.shape
        if length == max_chars and widest > 1:
            # Some rows may have no padding at their end. Then narrow filters have
            # windows that the widest filter does not have.
            x = torch.cat([self.cnn.convolve(part) for part in ids.split(32)])
        else:
            x = self.cnn.activation(self.convolve(ids).add_(self.bias))
        # oneDNN compiles a program for each row count, so pad to one of a few counts.
        # Packed kernels do that themselves.
        x = F.pad(x, (0, 0, 0, padded_rows(n_words) - n_words))
        for highway in self.highways:
            transform, gate = highway(x).chunk(2, dim=1)
            x = torch.lerp(x, transform.relu_(), gate.sigmoid_())
        return x[:n_words]

    def convolve(self, ids: Tensor) -> Tensor:
        """Compute the maximum of each filter over all windows, before bias and
        activation.

        ids (Tensor): Character ids, (n_words, length).
        RETURNS (Tensor): (n_words, n_features).
        """
        widest = self.cnn.widest
        n_words, length = ids.shape
        chars = self.embedding[ids]  # (n_words, length, char_dim)
        n_windows = length - widest + 1
        shifted = [chars[:, k : k + widest].flatten(1) for k in range(n_windows)]
        if n_words * n_windows <= FEW_WINDOWS:
            found = self.windows(torch.cat(shifted))
            return found.view(n_windows, n_words, -1).amax(0)
        best = self.windows(shifted[0])
        for window in shifted[1:]:
            torch.maximum(best, self.windows(window), out=best)
        return best


def _identity(x: Tensor) -> Tensor:
    return x


def _unpacked(weight: Tensor, bias: Tensor) -> Kernel:
    return partial(matmul, weight=weight, bias=bias)


class FastEncoder:
    """Maps ids to word vectors. A CNN over bytes has a fast path; other encoders are
    used as they are.

    small_lstms (bool): Whether the LSTMs are small. Then encoding words is most of the
        work, and all weights of the CNN are packed.
    """

    def __init__(self, encoder: TokenEncoder, *, small_lstms: bool) -> None:
        self.encoder = encoder
        self.cnn = None
        self.project: Kernel = _identity
        if isinstance(encoder, ByteEncoder):
            self.cnn = FastCNN(encoder.cnn, pack=small_lstms)
            last = encoder.projection
            if last is not None:
                self.project = fast_kernel(last.weight.detach(), last.bias.detach())

    def __call__(self, ids: Tensor) -> Tensor:
        if self.cnn is None:
            return self.encoder(ids)
        small = ids.numel() * self.cnn.n_weights < ENCODE_PARALLEL_FROM
        with one_thread() if small else nullcontext():
            return self.project(self.cnn(ids, self.encoder.max_chars))  # type: ignore[arg-type]


class FastLSTM:
    """One layer of one direction. It runs over batches in the layout of Packing."""

    def __init__(self, layer: ProjectedLSTM) -> None:
        self.n_in = layer.n_in
        self.dim = layer.dim
        self.cell_clip = layer.cell_clip
        self.proj_clip = layer.proj_clip
        self.weight = layer.weight.detach()
        self.bias = layer.bias.detach().clone()
        self.bias[2 * self.dim : 3 * self.dim] += layer.forget_bias
        self.projection = None
        self.project: Kernel = _identity
        self._down: Tensor | None = None
        self.gates = self.make_kernel(
            self.weight, self.bias, scale=gate_scale(self.bias), sigmoid=True
        )
        if layer.projection is not None:
            self.projection = layer.projection.detach()
            self.project = self.make_kernel(self.projection, limit=layer.proj_clip)

    make_kernel = staticmethod(fast_kernel)

    def run(self, x: Tensor, active: Sequence[int], h: Tensor, c: Tensor) -> Tensor:
        """Run the layer over a packed batch.

        x (Tensor): Packed inputs, (n_tokens, n_in).
        active (Sequence[int]): The number of active rows at each step.
        h, c (Tensor): The states (n_rows, proj) and (n_rows, dim), updated in place.
        RETURNS (Tensor): Packed outputs, (n_tokens, proj).
        """
        out = x.new_empty(len(x), h.shape[1])
        # Put x and h of a step side by side, so that one product covers both. The right
        # half is filled with h step by step.
        joined = torch.cat([x, out], 1)
        start = 0
        for n in active:
            if n == 1:
                pieces = zip(
                    x[start:].split(STEPS_AT_A_TIME), out[start:].split(STEPS_AT_A_TIME)
                )
                for some_x, some_out in pieces:
                    self.run_one_row(some_x, some_out, h[0], c[0])
                break
            rows = joined[start : start + n]
            rows[:, self.n_in :] = h[:n]
            h[:n] = self.project(self.cell(self.gates(rows), c[:n]))
            out[start : start + n] = h[:n]
            start += n
        return out

    def cell(self, gates: Tensor, c: Tensor) -> Tensor:
        """Update the cell.

        gates (Tensor): sigmoid(i), sigmoid(2 * candidate), sigmoid(f), sigmoid(o),
            (n, 4 * dim).
        c (Tensor): (n, dim), updated in place.
        RETURNS (Tensor): o * tanh(c), (n, dim).
        """
        i, candidate, f, o = gates.chunk(4, 1)
        c.mul_(f).addcmul_(i, candidate, value=2).sub_(i)
        if self.cell_clip is not None:
            c.clamp_(-self.cell_clip, self.cell_clip)
        return (c * 2).sigmoid_().mul_(2).sub_(1).mul_(o)

    @property
    def down(self) -> Tensor | None:
        """Return the transposed projection (proj, dim), which is faster to multiply
        with a vector; None if there is no projection."""
        if self._down is None and self.projection is not None:
            self._down = self.projection.t().contiguous()
        return self._down

    def run_one_row(self, x: Tensor, out: Tensor, h: Tensor, c: Tensor) -> None:
        """Run the layer over steps where a single row is active.

        With one row, loading the weights takes most of the time of a step. So the
        weights of the inputs are loaded once, for a product over all steps. In small
        layers, calling torch takes most of the time, so a step makes few calls.

        x (Tensor): Inputs, (n, n_in).
        out (Tensor): Where to write the outputs, (n, proj).
        h, c (Tensor): The states (proj,) and (dim,), updated in place.
        """
        gates = matmul(x, self.weight[: self.n_in], self.bias)  # (n, 4 * dim)
        recurrent = self.weight[self.n_in :].t()
        down = self.down
        i, candidate = gates[:, : 2 * self.dim].split(self.dim, 1)
        f, o = gates[:, 2 * self.dim :].split(self.dim, 1)
        parts = (gates, i, candidate, gates[:, 2 * self.dim :], f, o, out)
        last = h
        for row, i, candidate, fo, f, o, new in zip(
            *(part.unbind(0) for part in parts)
        ):
            row.addmv_(recurrent, last)
            fo.sigmoid_()
            c.mul_(f).addcmul_(i.sigmoid_(), candidate.tanh_())
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            if down is None:
                torch.mul(torch.tanh(c), o, out=new)
            else:
                torch.mv(down, torch.tanh(c).mul_(o), out=new)
                if self.proj_clip is not None:
                    new.clamp_(-self.proj_clip, self.proj_clip)
            last = new
        h.copy_(last)


class CPUEngine:
    """Runs both directions of a biLM over packed batches."""

    lstm_type = FastLSTM
    has_one_sentence_path = True

    def __init__(
        self,
        encoder: TokenEncoder,
        directions: Sequence[Sequence[ProjectedLSTM]],
        skip_connections: bool,
    ) -> None:
        small = directions[0][0].weight.numel() < PARALLEL_FROM
        self.encoder = FastEncoder(encoder, small_lstms=small)
        self.layers = list(zip(*directions))
        self.directions = [
            [self.lstm_type(layer) for layer in layers] for layers in directions
        ]
        self.skip_connections = skip_connections
        self._one_sentence_layers: list[BothDirectionsLSTM] | None = None

    @property
    def one_sentence_layers(self) -> list[BothDirectionsLSTM]:
        if self._one_sentence_layers is None:
            self._one_sentence_layers = [
                BothDirectionsLSTM(*pair) for pair in self.layers
            ]
        return self._one_sentence_layers

    def encode(self, ids: np.ndarray) -> Tensor:
        return self.encoder(torch.from_numpy(ids))

    def run(
        self, table: Tensor, index: np.ndarray, packing: Packing, state: State
    ) -> Tensor:
        """Run a batch of sentences; see Engine.run."""
        size = packing.active[0] * self.directions[0][0].weight.numel()
        one_small = packing.active[0] == 1 and size < PARALLEL_FROM
        if one_small and self.has_one_sentence_path:
            return self.run_one_sentence(table, torch.from_numpy(index), state)
        rows = torch.from_numpy(index)
        proj = table.shape[1]
        n_layers = len(self.directions[0])
        out = table.new_empty(len(index), n_layers + 1, 2 * proj)

        def run_direction(d: int) -> None:
            with torch.no_grad():
                half = out[:, :, d * proj : (d + 1) * proj]
                half[:, 0] = table[rows]
                order = torch.from_numpy(packing.order[d])
                x = table[rows[order]]  # (n_tokens, proj), packed
                outputs = run_stack(
                    self.directions[d],
                    x,
                    state.layers(d),
                    lambda layer, x, state: (
                        layer.run(x, packing.active, *state),
                        state,
                    ),
                    skip_connections=self.skip_connections,
                )
                for j, (y, _) in enumerate(outputs):
                    half[order, j + 1] = y

        tasks = [partial(run_direction, d) for d in (0, 1)]
        side_by_side(tasks, parallel=size >= PARALLEL_FROM)
        return out

    def run_one_sentence(self, table: Tensor, index: Tensor, state: State) -> Tensor:
        """Run one sentence through both directions at once; see `run`."""
        with torch.no_grad(), one_thread():
            x = table[torch.stack([index, index.flip(0)])]  # (2, n_tokens, proj)
            outputs = run_stack(
                self.one_sentence_layers,
                x,
                zip(state.h[:, :, 0].unbind(1), state.c[:, :, 0].unbind(1)),
                lambda layer, x, state: (layer.run(x, *state), state),
                skip_connections=self.skip_connections,
            )
            layers = [x, *(y for y, _ in outputs)]
            forward, backward = torch.stack(layers, 2)  # (n_tokens, n_layers + 1, ..)
            return torch.cat([forward, backward.flip(0)], 2)
