"""A stand-in, in the model of a downstream component, for the shared `elmo`."""

from typing import Any, List, Optional, Protocol, Tuple

from spacy.tokens import Doc
from thinc.api import Model

from .types import Layers, LayersBackprop


class Upstream(Protocol):
    """What a listener asks of the component it listens to."""

    def sizes(self) -> Tuple[int, int]: ...

    def listen(
        self, docs: List[Doc], is_train: bool
    ) -> Tuple[Layers, LayersBackprop]: ...


class ElmoListener(Model[List[Doc], Layers]):
    """Gives a downstream component the layers of the `elmo` component before it.

    upstream (str): The name of that component; "*" for any.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__(
            "elmo-listener", forward, init=init, dims={"nO": None, "nL": None}
        )
        self.upstream_name = upstream
        self.upstream: Optional[Upstream] = None

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
    model: ElmoListener, docs: List[Doc], is_train: bool
) -> Tuple[Layers, LayersBackprop]:
    return model.get_upstream().listen(docs, is_train)
