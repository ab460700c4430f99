"""Build the architectures that a config can name. pyproject.toml registers them."""

from collections.abc import Callable
from typing import Literal

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d

from .bilstm import BiLSTMEncoder, BiLSTMModelT
from .elmo_model import ElmoModel
from .listener import ElmoListener
from .mix import ElmoMix
from .settings import EncodingSettings
from .tok2vec import Tok2VecWithElmo
from .types import ElmoModelT, Tok2VecModelT


def build_elmo_model_v1() -> Callable[..., ElmoModelT]:
    """Return the function that builds the model of the `elmo` component. The factory
    calls it with settings that the config has in the section of the component, not in
    its [model]."""
    return ElmoModel


def build_elmo_layers_v1(
    bilm: str | None = None,
    frozen: bool = True,
    segments: Literal["auto", "sentences", "punctuation", "windows"] = "punctuation",
    window: int = 256,
    overlap: int = 64,
    stateful: bool = False,
    max_batch_tokens: int = 8192,
    precision: Literal["float32", "int8"] = "float32",
) -> ElmoModelT:
    """Build a model with a separate biLM for one component, in place of an ElmoListener
    that shares the biLM of `elmo`. The arguments are those of the `elmo` component."""
    settings = EncodingSettings(segments, window, overlap, stateful, max_batch_tokens)
    return ElmoModel(bilm, settings, frozen=frozen, precision=precision)


def build_elmo_listener_v1(upstream: str = "*") -> ElmoModelT:
    """Build a listener, which gives a downstream component the layers that the shared
    `elmo` component computes.

    upstream (str): The name of that component; "*" for any.
    """
    return ElmoListener(upstream)


# Configs set the arguments of ElmoMix, so that it needs no builder of its own.
build_elmo_mix_v1 = ElmoMix


def build_tok2vec_with_elmo_v1(
    embed: Model[list[Doc], list[Floats2d]] | None = None,
    encode: Model[list[Floats2d], list[Floats2d]] | None = None,
    elmo: Model | None = None,
    mix: Model | None = None,
    where: Literal["input", "output", "both"] = "both",
    output_mix: Model | None = None,
) -> Tok2VecModelT:
    """Build a tok2vec that concatenates spaCy's vector of each token with its ELMo
    vector, [x_k ; ELMo_k]. For the arguments see Tok2VecWithElmo."""
    return Tok2VecWithElmo(embed, encode, elmo, mix, where, output_mix)


def build_elmo_tok2vec_v1(
    elmo: Model | None = None, mix: Model | None = None
) -> Tok2VecModelT:
    """Build a tok2vec whose output is the ELMo vector of each token, ELMo_k.

    elmo (Model | None): An ElmoListener or ElmoLayers; by default a listener to any
        `elmo` component.
    mix (Model | None): An ElmoMix; by default one with its defaults.
    """
    return chain(elmo or ElmoListener("*"), mix or ElmoMix())


def build_bilstm_encoder_v1(
    width: int, depth: int = 2, dropout: float | None = None
) -> BiLSTMModelT:
    """Build an encoder of bidirectional LSTMs, which reads each doc on its own. For the
    arguments see BiLSTMEncoder."""
    return BiLSTMEncoder(width=width, depth=depth, dropout=dropout)
