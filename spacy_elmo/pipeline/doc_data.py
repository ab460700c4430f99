"""Store ELMo data on docs, and define the extension attributes that give access to it:
`elmo` and `elmo_similarity` of docs, tokens and spans, `elmo_layers` of tokens, and
`elmo_surprisal` of docs and tokens."""

from collections.abc import Iterator
from typing import Any, TypedDict, TypeVar

import numpy as np
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

ArrayT = TypeVar("ArrayT")

# The key has the form of spaCy's extension attributes, so that Doc.to_bytes saves the
# data and Doc.from_docs warns when it drops them.
KEY: Any = ("._.", "elmo_data", None, None)


class ElmoData(TypedDict):
    """The ELMo data of a doc: plain values and arrays, which spaCy can serialize.

    words: The ORTH of each token, (n_tokens,).
    key, bounds, stateful: How the doc was segmented: see SegmentedDoc.
    weights: The fingerprint of the biLM.
    source: The name or path that the biLM was loaded from; "" if unknown.
    component: The name of the component in its pipeline.
    mix: The share of each layer in the vectors, (n_layers + 1,).
    layers: (n_tokens, n_layers + 1, width), or None if not stored.
    vectors: (n_tokens, width), or None if they are computed from the layers.
    surprisal: (n_tokens, 2), or None if not computed.
    """

    words: np.ndarray
    key: bytes
    bounds: np.ndarray
    stateful: bool
    weights: str
    source: str
    component: str
    mix: list[float]
    layers: Floats3d | None
    vectors: Floats2d | None
    surprisal: np.ndarray | None


# Docs that were saved by older releases lack the other two.
REQUIRED = {*ElmoData.__annotations__} - {"source", "component"}
OPTIONAL = ("layers", "vectors", "surprisal")  # may be None


def get_data(doc: Doc) -> ElmoData | None:
    """Return the data of a doc, or None if it has none. Raise ValueError if they are
    not what `elmo` has stored, as those of a damaged file may be."""
    data = doc.user_data.get(KEY)
    if data is not None and not _is_sound(data):
        raise ValueError(
            "the ELMo data of this doc are damaged; run the 'elmo' component on the "
            "doc again"
        )
    return data


def _is_sound(data: Any) -> bool:
    """Return whether data have all entries, and arrays of shapes that fit each other.
    This takes constant time, because the data are checked at each access."""
    if not isinstance(data, dict) or not REQUIRED <= data.keys():
        return False
    words, mix = data["words"], data["mix"]
    types = {"key": bytes, "stateful": bool, "weights": str}
    if not all(isinstance(data[name], kind) for name, kind in types.items()):
        return False
    if not _fits(words, (None,)) or not isinstance(mix, list | tuple):
        return False
    shapes: dict[str, tuple[int | None, ...]] = {
        "bounds": (None, 4),
        "layers": (len(words), len(mix), None),
        "vectors": (len(words), None),
        "surprisal": (len(words), 2),
    }
    return all(isinstance(share, float | int) for share in mix) and all(
        name in OPTIONAL and data[name] is None or _fits(data[name], shape)
        for name, shape in shapes.items()
    )


def _fits(array: Any, expected: tuple[int | None, ...]) -> bool:
    shape = getattr(array, "shape", None)
    return (
        isinstance(shape, tuple)
        and len(shape) == len(expected)
        and all(size in (None, found) for found, size in zip(shape, expected))
    )


def set_data(doc: Doc, data: ElmoData | None) -> None:
    if data is None:
        doc.user_data.pop(KEY, None)
    else:
        doc.user_data[KEY] = data


class ElmoView:
    """The ELMo vectors of a doc: `doc._.elmo`.

    It has as many items as the doc has tokens: `doc._.elmo[i]` is the mixed vector of
    token i, (width,), and `doc._.elmo[i:j]` those of several, (j - i, width).
    """

    def __init__(self, doc: Doc) -> None:
        self.doc = doc

    def __repr__(self) -> str:
        data = get_data(self.doc)
        kept = ["nothing computed"]
        if data is not None:
            shapes: dict[str, Any] = {}
            if data["layers"] is not None:
                shapes["layers"] = data["layers"].shape
                shapes["vectors"] = (len(data["layers"]), data["layers"].shape[2])
            elif data["vectors"] is not None:
                shapes["vectors"] = data["vectors"].shape
            if data["surprisal"] is not None:
                shapes["surprisal"] = data["surprisal"].shape
            kept = [f"{name} {shape}" for name, shape in shapes.items()]
            # Docs that were saved by older releases have no source.
            kept.append(f"biLM {data.get('source') or data['weights'][:8]}")
        return f"<ELMo of {len(self.doc)} tokens: {', '.join(kept)}>"

    def __len__(self) -> int:
        return len(self.doc)

    def __getitem__(self, index: int | slice) -> Any:
        """Return the mixed vector of a token, (width,), or those of a slice of tokens,
        (n_sliced, width)."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self.vectors[index] if step != 1 else self._rows(start, stop)
        position = range(len(self))[index]  # raises IndexError beyond the doc
        return self._rows(position, position + 1)[0]

    def __iter__(self) -> Iterator[Floats1d]:
        return iter(self.vectors)

    def _rows(self, start: int, stop: int) -> Floats2d:
        return self.vectors_of(slice(start, max(start, stop)))

    @property
    def layers(self) -> Floats3d:
        """Return the layers of all tokens, (n_tokens, n_layers + 1, width). Layer 0 has
        the token vectors, which do not depend on context. Whitespace has zeros."""
        return self.layers_of(slice(0, len(self.doc)))

    @property
    def vectors(self) -> Floats2d:
        """Return the vectors of all tokens, (n_tokens, width): a mix of the layers."""
        return self.vectors_of(slice(0, len(self.doc)))

    @property
    def surprisal(self) -> np.ndarray:
        """Return the surprisal of all tokens in bits, (n_tokens, 2): given the words
        before, and given the words after."""
        return self.surprisal_of(slice(0, len(self.doc)))

    def layers_of(self, tokens: slice) -> Floats3d:
        """Return the layers of some tokens, (n_sliced, n_layers + 1, width)."""
        stored = self._data(tokens)["layers"]
        return _require(
            stored,
            "the layers of this doc were not stored; set store_layers of the 'elmo' "
            "component to 'device' or 'cpu'",
        )[tokens]

    def vectors_of(self, tokens: slice) -> Floats2d:
        """Return the vectors of some tokens, (n_sliced, width)."""
        data = self._data(tokens)
        if data["vectors"] is not None:
            return data["vectors"][tokens]
        layers = self.layers_of(tokens)
        xp = get_array_module(layers)
        shares = xp.asarray(data["mix"], dtype=layers.dtype)
        return (layers * shares[:, None]).sum(axis=1)

    def surprisal_of(self, tokens: slice) -> np.ndarray:
        """Return the surprisal of some tokens, (n_sliced, 2)."""
        stored = self._data(tokens)["surprisal"]
        return _require(
            stored,
            "surprisal was not computed for this doc; set surprisal of the 'elmo' "
            "component to true",
        )[tokens]

    def _data(self, tokens: slice) -> ElmoData:
        """Return the data of the doc, or raise ValueError if the given tokens have
        changed. Only the given tokens are checked, so that access to one token takes
        constant time."""
        data = get_data(self.doc)
        if data is None:
            raise ValueError(
                "this doc has no ELMo vectors; run the 'elmo' component on it (docs "
                "made by Doc.from_docs, Span.as_doc or DocBin without store_user_data "
                "lose them)"
            )
        then, now = data["words"], [token.orth for token in self.doc[tokens]]
        if len(then) != len(self.doc) or then[tokens].tolist() != now:
            raise ValueError(
                f"this doc was retokenized after 'elmo' ran: found {len(self.doc)} "
                f"tokens, and ELMo vectors of {len(then)} other tokens; retokenize "
                "before 'elmo', or run the component again on the doc"
            )
        return data


def _get_view(doc: Doc) -> ElmoView:
    return ElmoView(doc)


def _set_view(doc: Doc, value: Any) -> None:
    if value is not None:
        raise ValueError("doc._.elmo can only be set to None, which removes its data")
    set_data(doc, None)


def _get_surprisal(doc: Doc) -> np.ndarray:
    return ElmoView(doc).surprisal


def _get_token_surprisal(token: Token) -> np.ndarray:
    return ElmoView(token.doc).surprisal_of(slice(token.i, token.i + 1))[0]


def _get_token(token: Token) -> Floats1d:
    return ElmoView(token.doc).vectors_of(slice(token.i, token.i + 1))[0]


def _get_token_layers(token: Token) -> Floats2d:
    return ElmoView(token.doc).layers_of(slice(token.i, token.i + 1))[0]


def _get_span(span: Span) -> Floats1d:
    vectors = ElmoView(span.doc).vectors_of(slice(span.start, span.end))
    return vectors.sum(axis=0) / max(len(vectors), 1)


def _get_similarity(one: Any, other: Any) -> float:
    """Return the cosine of the ELMo vectors of two tokens, spans or docs."""
    from .similarity import get_similarity

    return get_similarity(one, other)


def install_extensions() -> None:
    """Register the extension attributes that are not yet registered with spaCy."""
    compare = {"elmo_similarity": {"method": _get_similarity}}
    attributes: dict[Any, dict[str, dict[str, Any]]] = {
        Doc: {
            "elmo": {"getter": _get_view, "setter": _set_view},
            "elmo_surprisal": {"getter": _get_surprisal},
            **compare,
        },
        Token: {
            "elmo": {"getter": _get_token},
            "elmo_layers": {"getter": _get_token_layers},
            "elmo_surprisal": {"getter": _get_token_surprisal},
            **compare,
        },
        Span: {"elmo": {"getter": _get_span}, **compare},
    }
    for owner, names in attributes.items():
        for name, access in names.items():
            if not owner.has_extension(name):
                owner.set_extension(name, **access)


def _require(stored: ArrayT | None, problem: str) -> ArrayT:
    """Return an array of a doc, or raise ValueError with the problem if there is
    none."""
    if stored is None:
        raise ValueError(problem)
    return stored
