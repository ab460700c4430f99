"""The differentiable layers of a biLM: linear map, character CNN, projected LSTM.

Weights have the shape (n_in, n_out), as in HDF5 files, so that loading and saving such
files never transposes anything. Constructors leave weights uninitialized, because most
models are loaded; `reset_parameters` draws random ones.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .devices import to_device
from .training.convolution import convolve_max, same_end
from .training.matmul import linear


def _new(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape))


class Linear(nn.Module):
    """Computes x W + b with W of shape (n_in, n_out)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = _new(n_in, n_out)
        self.bias = _new(n_out)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, 0.0, math.sqrt(1.0 / len(self.weight)))
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Highway(Linear):
    """Computes y = g * relu(x Wt + bt) + (1 - g) * x with g = sigmoid(x Wc + bc).
    The weight is [Wt | Wc], of shape (n, 2n)."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 2 * n)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(
            self.bias[len(self.weight) :], -2.0
        )  # y is close to x at first

    def forward(self, x: Tensor) -> Tensor:
        transform, gate = super().forward(x).chunk(2, dim=1)
        x = x.to(gate.dtype)  # they differ under autocast
        return torch.lerp(x, F.relu(transform), torch.sigmoid(gate))


class CharCNN(nn.Module):
    """Maps character ids (n_words, length) to features (n_words, n_filters): embedding,
    convolutions, maximum over positions, activation, highways."""

    def __init__(
        self,
        n_rows: int,
        *,
        char_dim: int,
        filters: Sequence[Sequence[int]],
        n_highway: int,
        activation: str,
    ) -> None:
        super().__init__()
        self.filters = [(width, number) for width, number in filters]
        self.widest = max(width for width, _ in self.filters)
        self.n_features = sum(number for _, number in self.filters)
        self.activation = torch.relu if activation == "relu" else torch.tanh
        self.embedding = _new(n_rows, char_dim)
        self.weights = nn.ParameterList(_new(w * char_dim, n) for w, n in self.filters)
        self.biases = nn.ParameterList(_new(n) for _, n in self.filters)
        self.highways = nn.ModuleList(
            Highway(self.n_features) for _ in range(n_highway)
        )

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.embedding, -1.0, 1.0)
        for weight, bias in zip(self.weights, self.biases):
            if self.activation is torch.relu:
                nn.init.uniform_(weight, -0.05, 0.05)
            else:
                nn.init.normal_(weight, 0.0, math.sqrt(1.0 / weight.shape[0]))
            nn.init.zeros_(bias)

    def forward(self, *groups: Tensor) -> Tensor:
        """Compute the features of words.

        groups (Tensor): Character ids, (n_words, length) each. The groups may differ in
            length.
        RETURNS (Tensor): (n_words of all groups, n_filters).
        """
        if self.merges_filters(groups):
            embedding, *weights = self._to_autocast(self.embedding, *self.weights)
            moved = [to_device(ids, embedding.device) for ids in groups]
            found = convolve_max(embedding, weights, moved)
            x = self.activation(found + torch.cat(list(self.biases)))
        else:
            x = torch.cat([self.convolve(ids) for ids in groups])
        for highway in self.highways:
            x = highway(x)
        return x

    def merges_filters(self, groups: Sequence[Tensor]) -> bool:
        """Return whether to compute the filters of all widths at once, with
        `convolve_max`: in training, if all rows end with enough padding.

        groups (Sequence[Tensor]): Character ids, (n_words, length) each, on the host.
        """
        return torch.is_grad_enabled() and all(
            same_end(ids, self.widest) for ids in groups
        )

    @staticmethod
    def _to_autocast(*weights: Tensor) -> list[Tensor]:
        """Convert weights to the dtype of autocast, if autocast is enabled. It converts
        the inputs of torch's operations, but not those of `convolve_max`."""
        device = weights[0].device.type
        if not torch.is_autocast_enabled(device):
            return list(weights)
        return [weight.to(torch.get_autocast_dtype(device)) for weight in weights]

    def convolve(self, ids: Tensor) -> Tensor:
        """Compute the activations of all filters, one width after another.

        ids (Tensor): Character ids, (n_words, length).
        RETURNS (Tensor): (n_words, n_features).
        """
        n_words, length = ids.shape
        ids = to_device(ids, self.embedding.device)
        chars = F.embedding(ids, self.embedding)  # (n_words, length, char_dim)
        features = []
        for (width, number), weight, bias in zip(
            self.filters, self.weights, self.biases
        ):
            n_windows = length - width + 1
            shifted = [chars[:, k : k + n_windows] for k in range(width)]
            flat = torch.cat(shifted, 2).flatten(0, 1)  # (.., width * char_dim)
            found = (flat @ weight).view(n_words, n_windows, number).max(1).values
            features.append(found + bias)
        return self.activation(torch.cat(features, 1))  # (n_words, n_features)


class ProjectedLSTM(nn.Module):
    """One LSTM layer of one direction, with an optional projection of its outputs. The
    columns of weight (n_in + proj, 4 * dim) and bias (4 * dim,) are the gates in the
    order input, candidate, forget, output."""

    def __init__(
        self,
        n_in: int,
        *,
        dim: int,
        projection_dim: int,
        cell_clip: float | None,
        proj_clip: float | None,
        forget_bias: float,
        projection: bool,
    ) -> None:
        super().__init__()
        self.n_in = n_in
        self.dim = dim
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        # Like the original program, do not clip h if there is no projection.
        self.proj_clip = proj_clip if projection else None
        self.forget_bias = forget_bias
        self.weight = _new(n_in + projection_dim, 4 * dim)
        self.bias = _new(4 * dim)
        self.projection = _new(dim, projection_dim) if projection else None

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def forward(
        self, x: Tensor, active: Tensor | None, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Run over a batch of sequences.

        x (Tensor): Inputs, (batch, time, n_in).
        active (Tensor | None): True where a row has a token, (batch, time). Elsewhere
            the state does not change. None if no row is padded.
        state (tuple[Tensor, Tensor]): h (batch, proj) and c (batch, dim) to start from.
        RETURNS (tuple): The outputs (batch, time, proj) and the last state of each row.
        """
        h, c = state
        # The product with x does not depend on the state: compute it for all steps.
        from_x = x @ self.weight[: self.n_in] + self.bias  # (batch, time, 4 * dim)
        recurrent = self.weight[self.n_in :]
        outputs: list[Tensor] = []
        for t in range(x.shape[1]):
            new_h, new_c = self.step(from_x[:, t] + h @ recurrent, c)
            outputs.append(new_h)
            if active is None:
                h, c = new_h, new_c
            else:
                keep = active[:, t, None]
                h, c = torch.where(keep, new_h, h), torch.where(keep, new_c, c)
        return torch.stack(outputs, 1), (h, c)

    def step(self, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Compute one step.

        gates (Tensor): The gates before their nonlinearities, (batch, 4 * dim).
        c (Tensor): The cell, (batch, dim).
        RETURNS (tuple[Tensor, Tensor]): The next h (batch, proj) and c (batch, dim).
        """
        i, candidate, f, o = gates.chunk(4, dim=1)
        c = torch.sigmoid(i) * torch.tanh(candidate) + c * torch.sigmoid(
            f + self.forget_bias
        )
        c = clip(c, self.cell_clip)
        h = torch.sigmoid(o) * torch.tanh(c)
        if self.projection is not None:
            h = clip(h @ self.projection, self.proj_clip)
        return h, c


def clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else x.clamp(-limit, limit)
