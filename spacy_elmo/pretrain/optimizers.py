"""Adagrad and AdamW, which accept gradients of whole weights or of some rows only."""

import math

import torch
from torch import Tensor

from ..bilm.devices import to_device
from ..bilm.training.softmax_backward import Gradient, RowGradient
from .pretrain_config import OptimizerConfig


class Adagrad:
    """Adagrad, as in the paper: a gradient is divided by the root of the sum of all
    squared gradients so far.

    weights (dict[str, Tensor]): The weights, which are changed.
    initial_accumulator (float): The value at which these sums start.
    """

    def __init__(
        self, weights: dict[str, Tensor], *, initial_accumulator: float = 1.0
    ) -> None:
        self.weights = weights
        self.sums = {
            name: torch.full_like(weight, initial_accumulator)
            for name, weight in weights.items()
        }

    @torch.no_grad()
    def step(self, name: str, gradient: Gradient, learn_rate: float) -> None:
        weight, total = self.weights[name], self.sums[name]
        if isinstance(gradient, RowGradient):
            rows, values = to_device(gradient.rows, total.device), gradient.values
            part = total[rows].addcmul_(values, values)
            total[rows] = part
            weight.index_add_(0, rows, values / part.sqrt_(), alpha=-learn_rate)
        else:
            total.addcmul_(gradient, gradient)
            weight.addcdiv_(gradient, total.sqrt(), value=-learn_rate)

    def state(self) -> dict[str, Tensor]:
        return {f"sums.{name}": total for name, total in self.sums.items()}


class AdamW:
    """Adam with decoupled weight decay.

    Only matrices decay. If a gradient has only some rows, as that of a sampled softmax,
    the moments of the other rows stay as they are.

    weights (dict[str, Tensor]): The weights, which are changed.
    """

    def __init__(
        self,
        weights: dict[str, Tensor],
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.weights = weights
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.weight_decay = weight_decay
        self.means = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.squares = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.counts = {name: torch.zeros(()) for name in weights}

    @torch.no_grad()
    def step(self, name: str, gradient: Gradient, learn_rate: float) -> None:
        weight, mean, square = self.weights[name], self.means[name], self.squares[name]
        self.counts[name] += 1
        count = float(self.counts[name])
        rows: Tensor | None = None
        if isinstance(gradient, RowGradient):
            rows, values = to_device(gradient.rows, mean.device), gradient.values
            weight, mean, square = weight[rows], mean[rows], square[rows]
        else:
            values = gradient
        mean.lerp_(values, 1 - self.beta1)
        square.mul_(self.beta2).addcmul_(values, values, value=1 - self.beta2)
        scale = math.sqrt(1 - self.beta2**count)
        size = learn_rate * scale / (1 - self.beta1**count)
        if self.weight_decay and weight.dim() > 1:
            weight.mul_(1 - learn_rate * self.weight_decay)
        weight.addcdiv_(mean, square.sqrt().add_(self.epsilon * scale), value=-size)
        if rows is not None:
            self.weights[name][rows] = weight
            self.means[name][rows] = mean
            self.squares[name][rows] = square

    def state(self) -> dict[str, Tensor]:
        parts = {"means": self.means, "squares": self.squares, "counts": self.counts}
        return {
            f"{part}.{name}": tensor
            for part, tensors in parts.items()
            for name, tensor in tensors.items()
        }


def make_optimizer(
    weights: dict[str, Tensor], config: OptimizerConfig
) -> Adagrad | AdamW:
    if config.name == "adagrad":
        return Adagrad(weights, initial_accumulator=config.initial_accumulator)
    return AdamW(
        weights,
        beta1=config.beta1,
        beta2=config.beta2,
        epsilon=config.epsilon,
        weight_decay=config.weight_decay,
    )


def clip_by_norm(gradients: dict[str, Gradient], limit: float) -> float:
    """Scale gradients in place so that the norm of all together is at most limit.

    limit (float): The largest norm; 0 for no limit.
    RETURNS (float): The norm before scaling.
    """
    values = [g.values if isinstance(g, RowGradient) else g for g in gradients.values()]
    norm = float(torch.stack([value.norm() for value in values]).norm())
    if limit and norm > limit:
        for value in values:
            value.mul_(limit / norm)
    return norm
