"""A tok2vec that combines spaCy's embed and encode layers with ELMo.

For token k, it concatenates spaCy's vector and the ELMo vector: [x_k ; ELMo_k].
"""

from collections.abc import Callable
from typing import Any

from spacy.ml.models.tok2vec import MaxoutWindowEncoder, MultiHashEmbed
from spacy.tokens import Doc
from thinc.api import Maxout, Model, Ops, with_array
from thinc.types import Floats2d

from .listener import ElmoListener
from .mix import ElmoMix, set_dims
from .types import ElmoModelT, MixModelT, Tok2VecModelT

WIDTH = 96
PLACES = ("input", "output", "both")


def Tok2VecWithElmo(
    embed: Tok2VecModelT | None = None,
    encode: Model[list[Floats2d], list[Floats2d]] | None = None,
    elmo: ElmoModelT | None = None,
    mix: MixModelT | None = None,
    where: str = "both",
    output_mix: MixModelT | None = None,
) -> Tok2VecModelT:
    """Build a tok2vec that combines spaCy's embed and encode layers with ELMo.

    embed (Model[list[Doc], list[Floats2d]] | None): Computes spaCy's vector x_k of each
        token; by default the embeddings of spaCy's own configs.
    encode (Model[list[Floats2d], list[Floats2d]] | None): Adds context: any layer that
        spacy.Tok2Vec.v2 takes as `encode`; by default the CNN of spaCy's own configs.
    elmo (Model[list[Doc], Layers] | None): An ElmoListener or ElmoLayers; by default a
        listener to any `elmo` component.
    mix (Model[Layers, list[Floats2d]] | None): An ElmoMix; by default one with its
        defaults.
    where (str): "input": the input of encode is [x_k ; ELMo_k], reduced to the width of
        encode by a maxout layer. "output": the result is [encode(x)_k ; ELMo_k].
        "both": both, with a separate mix for each.
    output_mix (Model | None): The mix at the output if `where` is "both"; by default a
        copy of `mix`.
    """
    if where not in PLACES:
        raise ValueError(f"where is {where!r}; expected one of {PLACES}")
    if output_mix is not None and where != "both":
        raise ValueError(
            f"where is {where!r} and output_mix is given; expected 'mix' alone"
        )
    embed, encode = embed or _make_embed(), encode or _make_encode()
    elmo, mix = elmo or ElmoListener("*"), mix or ElmoMix()
    at_input = mix if where != "output" else None
    at_output = mix if where == "output" else None
    if where == "both":
        at_output = output_mix or mix.copy()
    refs: list[tuple[str, Model | None]] = [
        ("embed", embed),
        ("elmo", elmo),
        ("input_mix", at_input),
        ("reduce", None if at_input is None else _make_reduction(encode)),
        ("encode", _take_lists(encode)),
        ("output_mix", at_output),
    ]
    model: Tok2VecModelT = ModelWithRefs(
        "tok2vec_with_elmo",
        forward,
        init=init,
        # spaCy's EntityLinker needs the width before the biLM is loaded.
        dims={"nO": encode.maybe_get_dim("nO") if where == "input" else None},
        layers=[layer for _, layer in refs if layer is not None],
        refs={},
    )
    for name, layer in refs:
        model.set_ref(name, layer)
    return model


class ModelWithRefs(Model):
    """A model whose copies keep its references to its layers. Thinc's own copies lose
    them, and spaCy copies models in nlp.replace_listeners."""

    def _copy(self, seen: dict[int, Any] | None = None) -> "ModelWithRefs":
        copied = super()._copy(seen)
        other = ModelWithRefs(
            copied.name,
            copied._func,
            init=copied.init,
            dims={name: copied.maybe_get_dim(name) for name in copied.dim_names},
            attrs=copied.attrs,
            layers=copied.layers,
        )
        for name in self.ref_names:
            ref = self.maybe_get_ref(name)
            place = None if ref is None else self.layers.index(ref)
            other.set_ref(name, None if place is None else other.layers[place])
        return other


# A saved config has null for a layer that was left out. So these sizes belong to the
# name spacy-elmo.Tok2VecWithElmo.v1 and must not change.


def _make_embed() -> Tok2VecModelT:
    return MultiHashEmbed(
        width=WIDTH,
        attrs=["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        rows=[5000, 1000, 2500, 2500],
        include_static_vectors=False,
    )


def _make_encode() -> Model[list[Floats2d], list[Floats2d]]:
    return MaxoutWindowEncoder(width=WIDTH, window_size=1, maxout_pieces=3, depth=4)


def _take_lists(encode: Model) -> Model[list[Floats2d], list[Floats2d]]:
    # An encoder gets a list with an array for each doc, so that its context ends where
    # the doc ends. The first versions of spaCy's encoders take one array for all docs,
    # and need as many rows of padding between docs as "receptive_field" says.
    receptive_field = encode.attrs.get("receptive_field")
    if receptive_field is None:
        return encode
    return with_array(encode, pad=receptive_field)


def _make_reduction(encode: Model) -> Model[list[Floats2d], list[Floats2d]]:
    # The input and output of spaCy's encoders have the same width.
    width = encode.maybe_get_dim("nI") or encode.get_dim("nO")
    return with_array(Maxout(nO=width, nP=3, dropout=0.0, normalize=True))


def init(model: Tok2VecModelT, X: list[Doc] | None = None, Y: Any = None) -> None:
    embed, elmo, encode = (model.get_ref(name) for name in ("embed", "elmo", "encode"))
    embed.initialize(X=X)
    elmo.initialize(X=X)
    for name in ("input_mix", "output_mix"):
        mix = model.maybe_get_ref(name)
        if mix is not None:
            set_dims(mix, elmo.get_dim("nL"), elmo.get_dim("nO"))
            mix.initialize()
    # The other layers need to know only the width of their input.
    width = embed.get_dim("nO")
    reduce = model.maybe_get_ref("reduce")
    if reduce is not None:
        reduce.initialize(X=[model.ops.alloc2f(1, width + elmo.get_dim("nO"))])
        width = reduce.get_dim("nO")
    encode.initialize(X=[model.ops.alloc2f(1, width)])
    width = encode.get_dim("nO")
    if model.maybe_get_ref("output_mix") is not None:
        width += elmo.get_dim("nO")
    model.set_dim("nO", width)


def forward(
    model: Tok2VecModelT, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    embed, elmo, encode = (model.get_ref(name) for name in ("embed", "elmo", "encode"))
    input_mix, reduce = model.maybe_get_ref("input_mix"), model.maybe_get_ref("reduce")
    output_mix = model.maybe_get_ref("output_mix")
    ops = model.ops

    x, bp_embed = embed(docs, is_train)
    layers, bp_elmo = elmo(docs, is_train)
    embed_width = x[0].shape[1] if x else 0
    if input_mix is not None and reduce is not None:
        at_input, bp_input_mix = input_mix(layers, is_train)
        x, bp_reduce = reduce(_concat(ops, x, at_input), is_train)
    y, bp_encode = encode(x, is_train)
    encode_width = y[0].shape[1] if y else 0
    if output_mix is not None:
        at_output, bp_output_mix = output_mix(layers, is_train)
        y = _concat(ops, y, at_output)

    def backprop(d_y: list[Floats2d]) -> list[Doc]:
        d_layers = []
        if output_mix is not None:
            d_layers.append(bp_output_mix([d[:, encode_width:] for d in d_y]))
            d_y = [ops.as_contig(d[:, :encode_width]) for d in d_y]
        d_x = bp_encode(d_y)
        if input_mix is not None:
            d_x = bp_reduce(d_x)
            d_layers.append(bp_input_mix([d[:, embed_width:] for d in d_x]))
            d_x = [ops.as_contig(d[:, :embed_width]) for d in d_x]
        if not layers.frozen:
            bp_elmo([sum(parts[1:], parts[0]) for parts in zip(*d_layers)])
        return bp_embed(d_x)

    return y, backprop


def _concat(ops: Ops, x: list[Floats2d], elmo: list[Floats2d]) -> list[Floats2d]:
    """Concatenate the two vectors of each token.

    x, elmo (list[Floats2d]): (n_tokens, width) for each doc. The widths may differ.
    """
    return [ops.xp.concatenate(pair, axis=1) for pair in zip(x, elmo)]
