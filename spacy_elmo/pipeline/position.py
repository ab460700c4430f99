"""Find out what surrounds a component in its pipeline: whether docs may have sentence
boundaries when it gets them, and whether a later component reads doc.tensor."""

import sys
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.vocab import Vocab
from thinc.api import Model

from ..text.token_kinds import find_tokenizer_kind

BOUNDARIES = {"token.is_sent_start", "doc.sents"}
TENSOR = "doc.tensor"


class PipelinePosition:
    """The position of a component in its pipeline.

    expects_boundaries (bool): What sees_boundaries returns while the pipeline is not
        known.
    expects_readers (list[bool]): What is known of each pipeline, for finds_reader while
        the pipelines are not known.
    """

    def __init__(
        self, expects_boundaries: bool = True, expects_readers: Iterable[bool] = ()
    ) -> None:
        self.expects_boundaries = expects_boundaries
        self.expects_readers = [*expects_readers] or [False]
        # Pipelines that share a sourced component. The last one was changed last.
        self._pipelines: list[weakref.ref[Language]] = []

    def attach(self, nlp: Language) -> None:
        """Add a pipeline, without keeping it alive."""
        others = [ref for ref in self._pipelines if ref() not in (None, nlp)]
        self._pipelines = [*others, weakref.ref(nlp)]

    def attach_caller(self) -> None:
        """Add the pipeline whose method has set an attribute of the component. spaCy
        does so after every change of a pipeline. There is no other way to know the
        pipeline of a component that was sourced."""
        nlp = sys._getframe(2).f_locals.get("self")
        if isinstance(nlp, Language):
            self.attach(nlp)

    def declare(self, component: Any, sets_tensor: bool) -> None:
        """Correct what nlp.analyze_pipes says about doc.tensor. The factory can only
        declare one list of attributes for all pipelines."""
        nlp = self._find_pipeline(component)
        if nlp is None:
            return
        for name, pipe in nlp.components:
            if pipe is component:
                meta = nlp.get_pipe_meta(name)
                assigns = [
                    attribute for attribute in meta.assigns if attribute != TENSOR
                ]
                if sets_tensor:
                    assigns.insert(0, TENSOR)
                nlp._pipe_meta[name] = replace(meta, assigns=assigns)

    def sees_boundaries(self, component: Any) -> bool:
        """Return whether any component that runs before `component` may set sentence
        boundaries."""
        nlp = self._find_pipeline(component)
        if nlp is None:
            return self.expects_boundaries
        return _sees_boundaries(nlp, component)

    def finds_reader(
        self,
        component: Any,
        *,
        width: int | None = None,
        vocab: Vocab | None = None,
        filled: bool = True,
    ) -> bool:
        """Return whether a component after `component` reads doc.tensor, as spaCy's
        listeners do, and expects the vectors of a component before `component`.

        width (int | None): The width of the vectors of `component`, if known. A
            listener of this width may read them if no earlier component sets
            doc.tensor.
        vocab (Vocab | None): The vocab of the docs, which tells pipelines that share
            the component apart.
        filled (bool): Whether doc.tensor has been set, which tells pipelines apart that
            share the vocab too: where it has been, any of them may need it.
        """
        pipelines = self._find_pipelines(component, vocab)
        found = [_finds_reader(nlp, component, width) for nlp in pipelines]
        found = found or self.expects_readers
        return any(found) if filled else all(found)

    def without_pipelines(self, component: Any) -> "PipelinePosition":
        """Return the position for a copy of `component` in another process, which may
        get the docs of any of the pipelines."""
        pipelines = self._find_all(component)
        if not pipelines:
            return PipelinePosition(self.expects_boundaries, self.expects_readers)
        return PipelinePosition(
            any(_sees_boundaries(nlp, component) for nlp in pipelines),
            [_finds_reader(nlp, component, None) for nlp in pipelines],
        )

    def find_tokens(self, component: Any, expected: str | None) -> str | None:
        """Return the kind of tokens that the tokenizer of the pipeline makes.

        expected (str | None): What to return while the pipeline is not known.
        """
        nlp = self._find_pipeline(component)
        return expected if nlp is None else find_tokenizer_kind(nlp.tokenizer)

    def check_widths(self, component: Any, width: int) -> None:
        """Raise ValueError if a listener of spaCy that can only read the doc.tensor of
        `component` expects vectors of another width."""
        nlp = self._find_pipeline(component)
        if nlp is None:
            return
        names = [name for name, _ in nlp.components]
        place = [pipe for _, pipe in nlp.components].index(component)
        for name, pipe in nlp.components[place + 1 :]:
            for node in _nodes_of(pipe):
                if not isinstance(node, Tok2VecListener):
                    continue
                found = node.maybe_get_dim("nO")
                if node.upstream_name == names[place] and found not in (None, width):
                    raise ValueError(
                        f"{name}: found a Tok2VecListener of width {found}; expected "
                        f"width {width}, which '{names[place]}' has, or better, use "
                        "spacy-elmo.ElmoTok2Vec.v1 as `tok2vec`, which needs no width"
                    )

    def _find_pipeline(self, component: Any) -> Language | None:
        """Return the pipeline that was changed last, among those with the component."""
        return next(iter(self._find_pipelines(component)), None)

    def _find_pipelines(
        self, component: Any, vocab: Vocab | None = None
    ) -> list[Language]:
        """Return all pipelines with the component and the vocab. If there are none with
        this vocab, return the pipeline with the component that was changed last."""
        found = self._find_all(component)
        return [nlp for nlp in found if nlp.vocab is vocab] or found[-1:]

    def _find_all(self, component: Any) -> list[Language]:
        alive = [nlp for ref in self._pipelines if (nlp := ref()) is not None]
        return [n for n in alive if any(p is component for _, p in n.components)]


def _sees_boundaries(nlp: Language, component: Any) -> bool:
    for name, pipe in nlp.components:
        if pipe is component:
            return False
        assigns = nlp.get_pipe_meta(name).assigns
        # A component that declares nothing may set anything.
        if not assigns or BOUNDARIES & set(assigns):
            return True
    return False


def _finds_reader(nlp: Language, component: Any, width: int | None) -> bool:
    """Return whether a component of a pipeline reads a doc.tensor that `component`
    should not set; see PipelinePosition.finds_reader."""
    names = [name for name, pipe in nlp.components if pipe is component]
    place = nlp.component_names.index(names[0])
    before, after = nlp.components[:place], nlp.components[place + 1 :]
    setters = [pipe for name, pipe in before if _may_set_tensor(nlp, name, pipe)]
    listeners = {id(node) for pipe in setters for node in _listeners_of(pipe)}
    for name, pipe in after:
        if name in nlp.disabled:
            continue
        for node in _nodes_of(pipe):
            if id(node) in listeners:
                return True
            if isinstance(node, Tok2VecListener) and node.upstream_name not in names:
                if setters or width not in (None, node.maybe_get_dim("nO")):
                    return True
        if TENSOR in nlp.get_pipe_meta(name).assigns and not _is_elmo(pipe):
            return False  # the later readers get the vectors of this component
    return False


def _may_set_tensor(nlp: Language, name: str, pipe: Any) -> bool:
    assigns = nlp.get_pipe_meta(name).assigns
    if _is_elmo(pipe):
        return False
    return TENSOR in assigns or (not assigns and bool(_listeners_of(pipe)))


def _listeners_of(pipe: Any) -> list[Any]:
    return list(getattr(pipe, "listeners", None) or ())


def _nodes_of(pipe: Any) -> Iterator[Model]:
    model = getattr(pipe, "model", None)
    return iter(model.walk() if isinstance(model, Model) else ())


def _is_elmo(pipe: Any) -> bool:
    return isinstance(getattr(pipe, "position", None), PipelinePosition)
