"""A stand-in, in the model of a downstream component, for the shared `elmo`, and what
takes its place in nlp.replace_listeners."""

from typing import Any, Protocol

from spacy.tokens import Doc
from thinc.api import Model

from .elmo_model import configure
from .settings import Settings
from .types import ElmoModelT, Layers, LayersBackprop


class Upstream(Protocol):
    """What a listener asks of the component it listens to."""

    def sizes(self) -> tuple[int, int]: ...

    def settled(self) -> Settings: ...

    def listen(
        self, docs: list[Doc], is_train: bool
    ) -> tuple[Layers, LayersBackprop]: ...


class ElmoListener(Model[list[Doc], Layers]):
    """Gives a downstream component the layers of the `elmo` component before it.

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
    return model.get_upstream().listen(docs, is_train)


class Replacement:
    """spaCy's callbacks for replace_listeners: the copy of the model that a downstream
    component gets reads docs as the component does at its place in the pipeline."""

    CFG, MODEL = "replace_listener_cfg", "replace_listener"

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream

    def __deepcopy__(self, memo: Any) -> "Replacement":
        return self  # a copied model does not copy the component along

    def __reduce__(self) -> Any:
        return _forgotten, ()  # nor a pickled one: the component installs a new one

    def install(self, model: ElmoModelT) -> None:
        model.attrs[self.CFG] = self
        model.attrs[self.MODEL] = replace_listener

    def __call__(self, elmo: Any, tok2vec: Any) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): The config of what takes a listener's place."""
        settings = self.upstream.settled().to_dict()
        name = "spacy-elmo.ElmoLayers.v1"
        return {"@architectures": name, "bilm": None, **settings}


def _forgotten() -> None:
    return None


def replace_listener(
    copied: ElmoModelT, listener: ElmoListener, upstream: Upstream
) -> ElmoModelT:
    """What takes a listener's place."""
    for name in (Replacement.CFG, Replacement.MODEL):
        del copied.attrs[name]
    configure(copied, upstream.settled())
    return copied
