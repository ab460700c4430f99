"""Compare tokens, spans and docs in their contexts: `_.elmo_similarity`."""

from typing import Any

from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d
from thinc.util import to_numpy

from .doc_data import ElmoData, ElmoView, get_data


def get_similarity(one: Doc | Span | Token, other: Doc | Span | Token) -> float:
    """Return the cosine of the ELMo vectors of two tokens, spans or docs, in any
    combination. The vector of a span or a doc is the mean of its tokens' vectors.

    Unlike spaCy's `similarity`, it does not return 1.0 for two tokens merely because
    they are spelled alike.

    RETURNS (float): From -1 to 1; 0 if one of them has a zero vector, as whitespace
        and empty docs have.
    """
    for item in (one, other):
        if not isinstance(item, Doc | Span | Token):
            raise TypeError(
                f"elmo_similarity got {type(item).__name__}; expected a Doc, Span or "
                "Token"
            )
    a: Any = _get_vector(one)
    b: Any = _get_vector(other)
    if _get_data(one)["weights"] != _get_data(other)["weights"]:
        raise ValueError(
            "the vectors of the two docs come from different biLMs and cannot be "
            "compared; expected docs of the same 'elmo' component"
        )
    # A DocBin makes tuples of lists.
    if [*_get_data(one)["mix"]] != [*_get_data(other)["mix"]]:
        raise ValueError(
            "the vectors of the two docs are different mixes of layers and cannot be "
            "compared; expected docs of 'elmo' components with the same mix"
        )
    if get_array_module(a) is not get_array_module(b):
        a, b = to_numpy(a), to_numpy(b)
    # float32 could overflow or vanish in the products of large or small vectors.
    a, b = a.astype("float64"), b.astype("float64")
    norms = float((a * a).sum()) ** 0.5 * float((b * b).sum()) ** 0.5
    if not norms:
        return 0.0
    return max(-1.0, min(1.0, float((a * b).sum()) / norms))


def _get_vector(item: Any) -> Floats1d:
    """Return the sum of the vectors of all tokens, (width,)."""
    if isinstance(item, Token):
        tokens = slice(item.i, item.i + 1)
    elif isinstance(item, Span):
        tokens = slice(item.start, item.end)
    else:
        tokens = slice(0, len(item))
    doc = item if isinstance(item, Doc) else item.doc
    vectors = ElmoView(doc).vectors_of(tokens)
    return vectors.sum(axis=0)  # its cosines are those of the mean


def _get_data(item: Any) -> ElmoData:
    data = get_data(item if isinstance(item, Doc) else item.doc)
    assert data is not None  # or its vectors would have been refused
    return data
