"""Grow a trained biLM into a larger one."""

from dataclasses import replace
from typing import cast

import torch
from torch import nn

from ..config import BytesConfig, LSTMConfig, WordsConfig
from ..layers import ProjectedLSTM
from ..model import BiLM
from ..softmax import FullSoftmax


def grow(bilm: BiLM, lstm: LSTMConfig) -> BiLM:
    """Make a biLM with wider LSTMs that computes the same as the given one: the old
    columns of its layers and the probabilities of words do not change. New units get
    random weights, but the weights from new to old units are zero until training
    changes them.

    lstm (LSTMConfig): The new sizes. Only dim and projection_dim may differ, and they
        may not be smaller.
    RETURNS (BiLM): A new model.
    """
    _check(bilm, lstm)
    config = replace(bilm.config, lstm=lstm)
    if config.encoder_projection != bilm.config.encoder_projection:
        # By default, an encoder whose features have the new projection_dim gets no
        # projection. Keep the projection, because its weights were trained.
        encoder = cast(BytesConfig | WordsConfig, config.encoder)
        config = replace(config, encoder=replace(encoder, projection=True))
    grown = BiLM(config, lexicon=bilm.lexicon, vocab=bilm.vocab).to(bilm.weight)
    with torch.no_grad():
        _copy_into(grown.encoder, bilm.encoder)
        pairs = zip(sum(bilm.directions, []), sum(grown.directions, []))
        for source, layer in pairs:
            _grow_layer(source, layer)
        if isinstance(grown.softmax, FullSoftmax):
            grown.softmax.weight.zero_()
        if bilm.softmax is not None and grown.softmax is not None:
            _copy_into(grown.softmax, bilm.softmax)
    return grown


def _copy_into(module: nn.Module, source: nn.Module) -> None:
    """Copy the weights of a smaller module of the same kind into the first rows and
    columns of the module's weights."""
    targets = module.state_dict()
    for name, weight in source.state_dict().items():
        targets[name][tuple(slice(n) for n in weight.shape)] = weight


def _grow_layer(source: ProjectedLSTM, layer: ProjectedLSTM) -> None:
    n, m = source.dim, layer.dim
    old, new = source.projection_dim, layer.projection_dim
    # The dimensions are: x or h (both have size proj), its unit, gate, cell unit.
    weight = layer.weight.view(2, new, 4, m)
    weight[..., :n] = 0.0
    weight[:, :old, :, :n] = source.weight.view(2, old, 4, n)
    layer.bias.view(4, m)[:, :n] = source.bias.view(4, n)
    if source.projection is not None and layer.projection is not None:
        layer.projection[:, :old] = 0.0
        layer.projection[:n, :old] = source.projection


def _check(bilm: BiLM, lstm: LSTMConfig) -> None:
    had = bilm.config.lstm
    same = replace(lstm, dim=had.dim, projection_dim=had.projection_dim)
    if same != had:
        raise ValueError(
            f"found LSTMs to grow from {had} to {lstm}; expected nothing but dim and "
            "projection_dim to differ"
        )
    if lstm.dim < had.dim or lstm.projection_dim < had.projection_dim:
        raise ValueError(
            f"found LSTMs to grow from dim {had.dim} and projection_dim "
            f"{had.projection_dim} to dim {lstm.dim} and projection_dim "
            f"{lstm.projection_dim}; expected no smaller sizes"
        )
    if lstm.projection_dim > had.projection_dim:
        if not bilm.config.encoder_projection:
            raise ValueError(
                "found a biLM to grow whose encoder has no projection; expected "
                f"projection_dim {had.projection_dim} to stay"
            )
        if bilm.softmax is not None and not isinstance(bilm.softmax, FullSoftmax):
            raise ValueError(
                "found a biLM to grow with an adaptive softmax; expected "
                f"projection_dim {had.projection_dim} to stay"
            )
