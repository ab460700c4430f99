"""Find out whether docs may have sentence boundaries when a component gets them."""

import weakref
from typing import Any

from spacy.language import Language

BOUNDARIES = {"token.is_sent_start", "doc.sents"}


class PipelinePosition:
    """The position of a component in its pipeline.

    expects_boundaries (bool): What sees_boundaries returns while the pipeline is not
        known.
    """

    def __init__(self, expects_boundaries: bool = True) -> None:
        self.expects_boundaries = expects_boundaries
        self._nlp: weakref.ref[Language] | None = None

    def attach(self, nlp: Language) -> None:
        """Set the pipeline, without keeping it alive."""
        self._nlp = weakref.ref(nlp)

    @property
    def known(self) -> bool:
        """Return whether the pipeline is known and still exists."""
        return self._get_nlp() is not None

    def sees_boundaries(self, component: Any) -> bool:
        """Return whether any component that runs before `component` may set sentence
        boundaries."""
        nlp = self._get_nlp()
        if nlp is None or all(pipe is not component for _, pipe in nlp.components):
            return self.expects_boundaries
        for name, pipe in nlp.components:
            if pipe is component:
                return False
            assigns = nlp.get_pipe_meta(name).assigns
            # A component that declares nothing may set anything.
            if not assigns or BOUNDARIES & set(assigns):
                return True
        return False

    def _get_nlp(self) -> Language | None:
        return None if self._nlp is None else self._nlp()
