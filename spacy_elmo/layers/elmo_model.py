"""Docs to layers: the Thinc model around the biLM."""

from collections.abc import Sequence
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import Model
from torch import Tensor

from ..bilm.devices import to_device
from .arrays import to_array
from .encode_docs import Rows, read_docs
from .mix import weighted_sum
from .segments import Reading, read_doc
from .settings import Settings
from .shim import BiLMShim
from .types import ElmoModelT, Layers, LayersBackprop


def ElmoModel(source: str | None, settings: Settings) -> ElmoModelT:
    """A model that reads docs and gives all layers of every token, zeros for
    whitespace. Its weights are read from the source when they are first needed.

    source (str | None): What load_bilm takes; None for the bundled biLM of the
        language.
    settings (Settings): How docs are read.
    """
    model: ElmoModelT = Model(
        "elmo",
        forward,
        init=init,
        dims={"nO": None, "nL": None},
        shims=[BiLMShim(source, frozen=settings.frozen)],
    )
    configure(model, settings)
    return model


def configure(model: ElmoModelT, settings: Settings) -> None:
    """Give a model other settings."""
    get_shim(model).frozen = settings.frozen
    # Not saved with the weights: a config may differ from the one at saving.
    model.attrs["settings"] = settings


def get_shim(model: ElmoModelT) -> BiLMShim:
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def get_settings(model: ElmoModelT) -> Settings:
    return model.attrs["settings"]


def init(model: ElmoModelT, X: Any = None, Y: Any = None) -> None:
    shim = get_shim(model)
    if shim.lang is None and X:
        shim.lang = X[0].lang_
    shim.load(None)
    config = shim.bilm.config
    model.set_dim("nO", config.width, force=True)
    model.set_dim("nL", config.lstm.n_layers + 1, force=True)


def forward(
    model: ElmoModelT, docs: list[Doc], is_train: bool
) -> tuple[Layers, LayersBackprop]:
    settings = get_settings(model)
    if settings.frozen or not is_train:
        layers = read_layers(model, [read_doc(doc, settings) for doc in docs])
        return Layers([to_array(model.ops, t) for t in layers]), no_backprop
    return begin_layers(model, docs, settings)


def begin_layers(
    model: ElmoModelT, docs: list[Doc], settings: Settings
) -> tuple[Layers, LayersBackprop]:
    """The layers of docs to learn from, and a callback that takes their gradients."""
    readings = [read_doc(doc, settings) for doc in docs]
    data, bp_layers = get_shim(model).begin_layers(model.ops, readings, settings)

    def backprop(gradients: Any) -> list[Doc]:
        bp_layers(gradients)
        return []

    return Layers(data, frozen=False), backprop


def read_layers(model: ElmoModelT, readings: Sequence[Reading]) -> list[Tensor]:
    """RETURNS (list[Tensor]): For each doc (n_tokens, n_layers + 1, width), without
    gradients, each with memory of its own."""
    outputs = [new_layers(model, reading) for reading in readings]

    def take(doc: int, rows: Rows, layers: Tensor) -> None:
        outputs[doc][rows] = layers

    read_docs(get_shim(model).bilm, readings, get_settings(model), take)
    return outputs


def read_vectors(
    model: ElmoModelT,
    readings: Sequence[Reading],
    shares: Sequence[float],
    *,
    keep_layers: bool,
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Mix layers as they are computed, so that they need not all be in memory.

    shares (Sequence[float]): Of each layer in the vectors.
    keep_layers (bool): Whether the layers are wanted too.
    RETURNS: For each doc the vectors (n_tokens, width) and the layers or None.
    """
    bilm = get_shim(model).bilm
    vectors = [
        torch.zeros(reading.n_tokens, bilm.config.width, device=bilm.device)
        for reading in readings
    ]
    kept: list[Tensor | None] = [
        new_layers(model, reading) if keep_layers else None for reading in readings
    ]

    s = to_device(torch.tensor(list(shares)), bilm.device)

    def take(doc: int, rows: Rows, layers: Tensor) -> None:
        vectors[doc][rows] = weighted_sum(s, layers)
        stack = kept[doc]
        if stack is not None:
            stack[rows] = layers

    read_docs(bilm, readings, get_settings(model), take)
    return vectors, kept


def new_layers(model: ElmoModelT, reading: Reading) -> Tensor:
    """RETURNS (Tensor): Zeros for the layers of a doc, (n_tokens, n_layers + 1,
    width)."""
    config, device = get_shim(model).bilm.config, get_shim(model).bilm.device
    shape = (reading.n_tokens, config.lstm.n_layers + 1, config.width)
    return torch.zeros(shape, device=device)


def no_backprop(gradients: Any) -> list[Doc]:
    return []
