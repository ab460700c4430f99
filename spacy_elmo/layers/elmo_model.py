"""The Thinc model around the biLM: maps docs to layers."""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..bilm.array_types import as_floats
from ..text.token_kinds import find_doc_kind
from .arrays import to_array, to_tensor
from .encode_docs import Rows, encode_docs
from .mix import weighted_sum
from .segments import SegmentedDoc, segment_doc
from .settings import EncodingSettings
from .shim import BiLMShim
from .types import ElmoModelT, Layers, LayersBackprop

SETTINGS = "settings"


def ElmoModel(
    source: str | None,
    settings: EncodingSettings,
    *,
    frozen: bool = True,
    lang: str | None = None,
    tokens: str | None = None,
    keep_softmax: bool = False,
    precision: str = "float32",
) -> ElmoModelT:
    """Build a model that maps docs to all layers of each token, with zeros for
    whitespace. Its weights are loaded when they are first needed.

    settings (EncodingSettings): How docs are segmented and encoded.
    source, frozen, lang, tokens, keep_softmax, precision: See BiLMShim.
    """
    shim = BiLMShim(
        source,
        frozen=frozen,
        lang=lang,
        tokens=tokens,
        keep_softmax=keep_softmax,
        precision=precision,
    )
    return Model(
        "elmo",
        forward,
        init=init,
        dims={"nO": None, "nL": None},
        shims=[shim],
        # Thinc saves attrs of simple types with the weights, but not this object. So
        # the settings come from the config, where a user may change them.
        attrs={SETTINGS: settings},
    )


def get_shim(model: ElmoModelT) -> BiLMShim:
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def get_settings(model: ElmoModelT) -> EncodingSettings:
    return model.attrs[SETTINGS]


def init(model: ElmoModelT, X: Any = None, Y: Any = None) -> None:
    shim = get_shim(model)
    if X:
        shim.tokens = shim.tokens or find_doc_kind(X[0])
    shim.load(lang=X[0].lang_ if X else None)
    n_layers, width = shim.sizes
    model.set_dim("nO", width, force=True)
    model.set_dim("nL", n_layers, force=True)


def forward(
    model: ElmoModelT, docs: list[Doc], is_train: bool
) -> tuple[Layers, LayersBackprop]:
    segmented = [segment_doc(doc, get_settings(model)) for doc in docs]
    if is_train and not get_shim(model).frozen:
        return begin_layers(model, segmented)
    return Layers(predict_layers(model, segmented)), no_backprop


def begin_layers(
    model: ElmoModelT, docs: Sequence[SegmentedDoc]
) -> tuple[Layers, LayersBackprop]:
    """Compute the layers of docs for training.

    RETURNS: The layers, and a callback that takes their gradients, with the same
        shapes, and backpropagates them to the weights of the biLM.
    """
    import torch

    from .encode_with_gradients import encode_docs_with_gradients

    bilm = get_shim(model).trainable_bilm
    outputs = encode_docs_with_gradients(bilm, docs, get_settings(model))

    def backprop(gradients: list[Floats3d] | None) -> list[Doc]:
        # If all tokens are whitespace, the layers are zeros, which have no gradient.
        if gradients and any(output.requires_grad for output in outputs):
            tensors = [to_tensor(gradient, bilm.device) for gradient in gradients]
            torch.autograd.backward(outputs, tensors)
        return []

    arrays = [to_array(model.ops, output) for output in outputs]
    return Layers(arrays, frozen=False), backprop


def predict_layers(model: ElmoModelT, docs: Sequence[SegmentedDoc]) -> list[Floats3d]:
    """Compute the layers of docs without gradients.

    RETURNS (list[Floats3d]): (n_tokens, n_layers + 1, width) for each doc. The arrays
        share no memory with each other.
    """
    outputs = [_new_layers(model, doc) for doc in docs]

    def take(doc: int, rows: Rows, layers: Any) -> None:
        outputs[doc][rows] = layers

    encode_docs(get_shim(model).bilm, docs, get_settings(model), take)
    return [to_array(model.ops, output) for output in outputs]


def predict_vectors(
    model: ElmoModelT,
    docs: Sequence[SegmentedDoc],
    shares: Sequence[float],
    *,
    keep_layers: bool,
) -> tuple[list[Any], list[Any]]:
    """Compute the mixed vectors of docs without gradients. Layers are mixed batch by
    batch, so that the layers of all docs need not fit in memory.

    shares (Sequence[float]): The share of each layer in the vectors, (n_layers + 1,).
    keep_layers (bool): Whether to return the layers as well.
    RETURNS: Two lists with an item for each doc: the vectors, (n_tokens, width), and
        the layers, (n_tokens, n_layers + 1, width), or None if they are not kept.
    """
    bilm = get_shim(model).bilm
    vectors = [bilm.new_zeros(doc.n_tokens, bilm.config.width) for doc in docs]
    kept = [_new_layers(model, doc) if keep_layers else None for doc in docs]
    s = as_floats(shares, bilm.new_zeros(0))

    def take(doc: int, rows: Rows, layers: Any) -> None:
        vectors[doc][rows] = weighted_sum(s, layers)
        stack = kept[doc]
        if stack is not None:
            stack[rows] = layers

    encode_docs(bilm, docs, get_settings(model), take)
    return (
        [to_array(model.ops, tensor) for tensor in vectors],
        [None if stack is None else to_array(model.ops, stack) for stack in kept],
    )


def _new_layers(model: ElmoModelT, doc: SegmentedDoc) -> Any:
    """Return zeros for the layers of a doc, (n_tokens, n_layers + 1, width)."""
    shim = get_shim(model)
    return shim.bilm.new_zeros(doc.n_tokens, *shim.sizes)


def no_backprop(gradients: Any) -> list[Doc]:
    return []
