"""The listener: a layer in the model of a downstream component that gets its output
from the shared `elmo` component."""

from typing import Any, Protocol

from spacy.tokens import Doc
from thinc.api import Model

from .elmo_model import SETTINGS, get_shim
from .settings import EncodingSettings
from .types import ElmoModelT, Layers, LayersBackprop


class Upstream(Protocol):
    """The methods of the `elmo` component that its listeners call."""

    model: ElmoModelT

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
            "elmo-listener", forward, init=init, dims={"nO": None, "nL": None}
        )
        self.upstream_name = upstream
        self.upstream: Upstream | None = None

    def get_upstream(self) -> Upstream:
        if self.upstream is None:
            wanted = "an 'elmo' component"
            if self.upstream_name != "*":
                wanted = f"an 'elmo' component called '{self.upstream_name}'"
            raise ValueError(
                f"an ElmoListener has nothing to listen to; expected {wanted} earlier "
                "in the pipeline than the component that listens"
            )
        return self.upstream


def init(model: ElmoListener, X: Any = None, Y: Any = None) -> None:
    n_layers, width = model.get_upstream().sizes()
    model.set_dim("nL", n_layers, force=True)
    model.set_dim("nO", width, force=True)


def forward(
    model: ElmoListener, docs: list[Doc], is_train: bool
) -> tuple[Layers, LayersBackprop]:
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
        return {
            "@architectures": "spacy-elmo.ElmoLayers.v1",
            "bilm": None,
            "frozen": get_shim(self.upstream.model).frozen,
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
