"""Keep track of the listeners of a component, as spaCy's Tok2Vec does."""

from abc import ABC, abstractmethod
from typing import Any

from spacy.vocab import Vocab
from thinc.api import Model

from ..layers.listener import ElmoListener, Upstream
from .position import PipelinePosition


class Listened(ABC):
    """A component with listeners: ElmoListeners in the models of other components.

    position (PipelinePosition): The position of the component in its pipeline.
    """

    name: str
    vocab: Vocab
    position: PipelinePosition

    @abstractmethod
    def _sets_tensor(self, vocab: Vocab | None = None, filled: bool = True) -> bool:
        """Return whether to set doc.tensor.

        vocab (Vocab | None): The vocab of the docs; None before there are any.
        filled (bool): Whether doc.tensor has been set before.
        """

    @property
    def listener_map(self) -> dict[str, list[ElmoListener]]:
        """Return the listeners of each component that listens to this component."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listener_map: dict[str, list[ElmoListener]]) -> None:
        self._listener_map = listener_map
        # spaCy sets it to {} after every change of a pipeline.
        self.position.attach_caller()
        self.position.declare(self, self._sets_tensor())

    @property
    def listeners(self) -> list[ElmoListener]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def listening_components(self) -> list[str]:
        return list(self.listener_map)

    def add_listener(self, listener: ElmoListener, component_name: str) -> None:
        nodes = self.listener_map.setdefault(component_name, [])
        if listener not in nodes:
            nodes.append(listener)
        assert isinstance(self, Upstream)
        other = listener.upstream
        if isinstance(other, Listened) and other is not self:
            if other.vocab is self.vocab:  # the later of two components in a pipeline
                other.remove_listener(listener, component_name)
        listener.upstream = self
        listener.component_name = component_name

    def remove_listener(self, listener: ElmoListener, component_name: str) -> bool:
        nodes = self.listener_map.get(component_name, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component_name]
        return True

    def find_listeners(self, component: Any) -> None:
        """Add all listeners in the model of another component that listen to this
        component."""
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for node in model.walk():
                if isinstance(node, ElmoListener):
                    if node.upstream_name in ("*", self.name):
                        self.add_listener(node, component.name)
