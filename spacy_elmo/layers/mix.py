"""Mix layers into one vector per token: ELMo_k = gamma * sum_j s_j h(k,j).

h(k,j) is the vector of token k in layer j, where layer 0 has the token vectors. The
weights are s = softmax(w). The mix learns w and gamma.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from thinc.api import Model, Ops, get_array_module
from thinc.types import Floats2d, Floats3d

from .types import Layers, MixModelT

NAME = "elmo-mix"
EPSILON = 1e-5


@dataclass
class MixConfig:
    """The arguments of ElmoMix."""

    layer_norm: bool
    dropout: float | None
    l2: float
    fixed: list[float] | None
    init_weights: list[float] | None
    init_gamma: float


def ElmoMix(
    *,
    layer_norm: bool = True,
    dropout: float | None = None,
    l2: float = 0.001,
    fixed: list[float] | None = None,
    init_weights: list[float] | None = None,
    init_gamma: float = 1.0,
) -> MixModelT:
    """Build a model that mixes layers with weights that the task learns.

    layer_norm (bool): First normalize each token's vector in each layer to mean 0 and
        variance 1.
    dropout (float | None): The dropout rate of the result; None for the dropout rate of
        the training.
    l2 (float): The paper's lambda: l2 * |w|^2 is added to the loss of each batch.
    fixed (list[float] | None): Values of the s_j that are used instead of learned ones,
        (n_layers + 1,). Gamma is still learned.
    init_weights (list[float] | None): The initial w_j, (n_layers + 1,). By default
        zeros, so that training starts from the mean of the layers.
    init_gamma (float): The initial gamma.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; expected 0 or more and less than 1")
    if l2 < 0:
        raise ValueError(f"l2 is {l2}; expected 0 or more")
    if fixed is not None and init_weights is not None:
        raise ValueError("found both fixed and init_weights; expected one of them")
    if fixed is not None:
        check_shares("ElmoMix: fixed", fixed)
    for values in (init_weights or [], [init_gamma]):
        if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
            raise ValueError(f"ElmoMix: found {values}; expected finite numbers")
    model: MixModelT = Model(
        NAME,
        forward,
        init=init,
        dims={"nL": None, "nI": None, "nO": None},
        params={"w": None, "gamma": None},
        # If "dropout_rate" exists, Thinc and spaCy set it to the rate of the training.
        attrs={"dropout_rate": 0.0} if dropout is None else {},
    )
    # Thinc does not save this object with the weights: the values are in the config.
    model.attrs["mix"] = MixConfig(
        layer_norm, dropout, l2, fixed, init_weights, init_gamma
    )
    return model


def check_shares(name: str, shares: Sequence[float]) -> None:
    """Raise ValueError if no vectors can be computed with the given shares of layers.

    name (str): The name of the setting, for the error message.
    """
    with np.errstate(over="ignore"):
        values = np.asarray(shares, dtype=np.float64).astype(np.float32)
    if not len(values) or not np.isfinite(values).all() or not values.any():
        raise ValueError(
            f"{name} is {list(shares)}; expected a finite number for each layer of "
            "the biLM and one for its token vectors, and not only zeros"
        )


def get_mix(model: MixModelT) -> tuple[list[float], float]:
    """Return the weights s_j, (n_layers + 1,), and the scale gamma."""
    ops = model.ops
    s = ops.to_numpy(_get_shares(model)).tolist()
    return s, float(ops.to_numpy(model.get_param("gamma"))[0])


def init(model: MixModelT, X: Layers | None = None, Y: Any = None) -> None:
    if X is not None and X.data:
        set_dims(model, X.data[0].shape[1], X.data[0].shape[2])
    n_layers = model.get_dim("nL")
    config: MixConfig = model.attrs["mix"]
    for name in ("fixed", "init_weights"):
        values = getattr(config, name)
        if values is not None and len(values) != n_layers:
            raise ValueError(
                f"ElmoMix: {name} has {len(values)} numbers; expected {n_layers}, one "
                "for each layer of the biLM and one for its token vectors"
            )
    ops = model.ops
    start = config.init_weights or [0.0] * n_layers
    model.set_param("w", ops.asarray1f(start))
    model.set_param("gamma", ops.asarray1f([config.init_gamma]))


def set_dims(model: MixModelT, n_layers: int, width: int) -> None:
    model.set_dim("nL", n_layers)
    model.set_dim("nI", width)
    model.set_dim("nO", width)


def forward(
    model: MixModelT, layers: Layers, is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d] | None]]:
    ops = model.ops
    config: MixConfig = model.attrs["mix"]
    s, gamma = _get_shares(model), model.get_param("gamma")
    if not is_train:
        # Doc by doc, because the layers of a batch of docs need much memory.
        mix = _normalized_sum if config.layer_norm else weighted_sum
        return [mix(gamma * s, h) for h in layers.data], _no_backprop
    lengths = [len(h) for h in layers.data]
    raw = ops.xp.concatenate(layers.data)  # (n_tokens, n_layers + 1, width)
    h = _normalize(ops, raw) if config.layer_norm else raw
    mixed = weighted_sum(s, h)  # (n_tokens, width)
    rate = model.attrs.get("dropout_rate", config.dropout)
    mask = ops.get_dropout_mask(mixed.shape, rate) if rate else None
    output = gamma * mixed
    if mask is not None:
        output *= mask

    def backprop(gradients: list[Floats2d]) -> list[Floats3d] | None:
        d_output = ops.xp.concatenate(gradients)
        if mask is not None:
            d_output = d_output * mask
        model.inc_grad("gamma", (d_output * mixed).sum().reshape(1))
        d_mixed = gamma * d_output
        if config.fixed is None:
            d_s = ops.xp.stack([(d_mixed * h[:, j]).sum() for j in range(len(s))])
            w = model.get_param("w")
            d_w = s * (d_s - (s * d_s).sum()) + 2 * config.l2 * w
            model.inc_grad("w", d_w.astype(w.dtype))
        if layers.frozen:
            return None
        d_h = d_mixed[:, None, :] * s[None, :, None]
        if config.layer_norm:
            d_h = _backprop_normalize(ops, raw, d_h)
        return _split(d_h, lengths)

    return _split(output, lengths), backprop


def weighted_sum(s: Any, h: Any) -> Any:
    """Compute sum_j s_j h(k,j), for arrays or tensors.

    s: The weight of each layer, (n_layers + 1,).
    h: The layers, (n_tokens, n_layers + 1, width).
    RETURNS: (n_tokens, width).
    """
    output = s[0] * h[:, 0]
    for j in range(1, h.shape[1]):
        output += s[j] * h[:, j]
    return output


def _get_shares(model: MixModelT) -> Any:
    """Return the weights s_j, (n_layers + 1,)."""
    fixed = model.attrs["mix"].fixed
    if fixed is not None:
        return model.ops.asarray1f(fixed)
    w = model.get_param("w")
    exp = model.ops.xp.exp(w - w.max())
    return exp / exp.sum()


def _normalize(ops: Ops, h: Any) -> Any:
    centered = h - h.mean(-1, keepdims=True)
    return centered / ops.xp.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON)


def _normalized_sum(s: Any, h: Any) -> Any:
    """Compute weighted_sum of the normalized layers, without storing these."""
    xp = get_array_module(h)
    centered = h - h.mean(-1, keepdims=True)
    variance = xp.einsum("klw,klw->kl", centered, centered) / h.shape[2]
    return xp.einsum("kl,klw->kw", s / xp.sqrt(variance + EPSILON), centered)


def _backprop_normalize(ops: Ops, h: Any, d: Any) -> Any:
    centered = h - h.mean(-1, keepdims=True)
    scale = 1 / ops.xp.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON)
    y = centered * scale
    d = d - d.mean(-1, keepdims=True) - y * (d * y).mean(-1, keepdims=True)
    return d * scale


def _split(array: Any, lengths: Sequence[int]) -> list[Any]:
    ends = np.cumsum(lengths)
    return [array[end - n : end] for n, end in zip(lengths, ends.tolist())]


def _no_backprop(gradients: Any) -> None:
    return None
