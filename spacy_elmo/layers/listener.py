"""The listener: a layer in the model of a downstream component that gets its output
from the shared `elmo` component."""

import copy
import warnings
from typing import Any, NamedTuple, Protocol, runtime_checkable

from spacy.tokens import Doc
from thinc.api import Model

from .elmo_model import SETTINGS, get_shim
from .settings import EncodingSettings
from .types import ElmoModelT, Layers, LayersBackprop

BILM = "bilm"


class KnownBiLM(NamedTuple):
    """What a listener knows about the biLM with which its component was trained.

    name (str): The name or path that it was loaded from; "" if unknown.
    identity (str): Differs between biLMs with different weights.
    """

    name: str
    identity: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, f"[{self.identity}]") if part)


@runtime_checkable
class Upstream(Protocol):
    """The attributes and methods of the `elmo` component that its listeners use."""

    name: str
    model: ElmoModelT

    def known_bilm(self) -> KnownBiLM | None: ...

    def sizes(self) -> tuple[int, int]: ...

    def resolve_settings(self) -> EncodingSettings: ...

    def provide_layers(
        self, docs: list[Doc], is_train: bool
    ) -> tuple[Layers, LayersBackprop]: ...


class ElmoListener(Model[list[Doc], Layers]):
    """Gets the layers of docs from the `elmo` component earlier in the pipeline.

    upstream (str): The name of that component; "*" for any.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__(
            "elmo-listener",
            forward,
            init=init,
            dims={"nO": None, "nL": None},
            # The fields of a KnownBiLM, which Thinc saves with the weights. None while
            # the biLM itself is trained, because this changes its identity.
            attrs={BILM: None},
        )
        self.upstream_name = upstream
        self.upstream: Upstream | None = None
        self.component_name = "an ElmoListener"  # until its component is known
        self._warned = False

    def _copy(self, seen: dict[int, Any] | None = None) -> "ElmoListener":
        """Copy the listener. The copy listens to the same component. (Thinc's own
        method would return a Model without the attributes of this class.)"""
        other = ElmoListener(self.upstream_name)
        other.upstream = self.upstream
        other.component_name = self.component_name
        other.attrs[BILM] = copy.copy(self.attrs[BILM])
        for name in self.dim_names:
            if self.has_dim(name):
                other.set_dim(name, self.get_dim(name))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "ElmoListener":
        # Copying the model of a task must not copy the component it listens to, unless
        # the whole pipeline is copied.
        other = self._copy()
        other.upstream = memo.get(id(self.upstream), self.upstream)
        return other

    def get_upstream(self) -> Upstream:
        if self.upstream is None:
            name = "elmo" if self.upstream_name == "*" else self.upstream_name
            trained = ""
            if self.attrs[BILM] is not None:
                trained = f" with the biLM {KnownBiLM(*self.attrs[BILM])}"
            raise ValueError(
                f"an ElmoListener has nothing to listen to; expected a component "
                f"'{name}'{trained} earlier in the pipeline than the component that "
                f"listens: put it back with nlp.add_pipe('elmo', name='{name}', "
                "first=True) and its `bilm` or `source`, or, before you remove it, "
                "give each such component its own biLM with nlp.replace_listeners"
            )
        return self.upstream

    def learn_bilm(self) -> None:
        """Store which biLM the component is trained with."""
        known = self.get_upstream().known_bilm()
        self.attrs[BILM] = None if known is None else list(known)

    def check_bilm(self) -> None:
        """Raise ValueError if the biLM has other sizes than the one with which the
        component was trained, and warn if it has other weights."""
        upstream = self.get_upstream()
        sizes = upstream.sizes()
        expected = (self.maybe_get_dim("nL"), self.maybe_get_dim("nO"))
        trained = None if self.attrs[BILM] is None else KnownBiLM(*self.attrs[BILM])
        if None not in expected and expected != sizes:
            found = upstream.known_bilm()
            raise ValueError(
                f"{self.component_name}: found {_describe(sizes, found)} in "
                f"'{upstream.name}'; expected {_describe(expected, trained)}, with "
                "which it was trained: use that biLM, or train the component again"
            )
        if trained is None or self._warned:
            return
        found = upstream.known_bilm()
        if found is not None and found.identity != trained.identity:
            self._warned = True
            warnings.warn(
                f"{self.component_name}: found the biLM {found} in '{upstream.name}'; "
                f"expected {trained}, with which it was trained, so its predictions "
                "are probably wrong",
                stacklevel=2,
            )


def _describe(sizes: tuple[Any, Any], known: KnownBiLM | None) -> str:
    name = "" if known is None else f" {known}"
    return f"a biLM{name} of {sizes[0]} layers of width {sizes[1]}"


def init(model: ElmoListener, X: Any = None, Y: Any = None) -> None:
    n_layers, width = model.get_upstream().sizes()
    model.set_dim("nL", n_layers, force=True)
    model.set_dim("nO", width, force=True)
    model.learn_bilm()


def forward(
    model: ElmoListener, docs: list[Doc], is_train: bool
) -> tuple[Layers, LayersBackprop]:
    if is_train:
        model.learn_bilm()
    model.check_bilm()
    return model.get_upstream().provide_layers(docs, is_train)


class Replacement:
    """A callback for nlp.replace_listeners, which returns the config of the model that
    replaces a listener. The model segments docs in the same way as the `elmo` component
    does at its position in the pipeline.

    upstream (Upstream): The `elmo` component.
    """

    CFG, MODEL = "replace_listener_cfg", "replace_listener"

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream

    def __deepcopy__(self, memo: Any) -> "Replacement":
        return self  # copying a model must not copy the component

    def __reduce__(self) -> Any:
        # Pickling a model must not pickle the component. An unpickled component
        # installs a new callback.
        return _return_none, ()

    def install(self, model: ElmoModelT) -> None:
        """Add the attributes that nlp.replace_listeners looks for."""
        model.attrs[self.CFG] = self
        model.attrs[self.MODEL] = replace_listener

    def __call__(self, elmo: Any, tok2vec: Any) -> dict[str, Any]:
        """Return the config of the model that replaces a listener."""
        shim = get_shim(self.upstream.model)
        return {
            "@architectures": "spacy-elmo.ElmoLayers.v1",
            "bilm": shim.name or None,
            "frozen": shim.frozen,
            "precision": shim.precision,
            **self.upstream.resolve_settings().to_dict(),
        }


def _return_none() -> None:
    return None


def replace_listener(
    copied: ElmoModelT, listener: ElmoListener, upstream: Upstream
) -> ElmoModelT:
    """Turn a copy of the `elmo` component's model, which spaCy has made, into the model
    that replaces a listener."""
    for name in (Replacement.CFG, Replacement.MODEL):
        del copied.attrs[name]
    copied.attrs[SETTINGS] = upstream.resolve_settings()
    return copied
