"""Run a pipeline over a corpus and write what it finds to a folder of files, on this
machine or on a cluster."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..fingerprints import fingerprint_data, fingerprint_path
from ..parts.part_folder import check_part_folder
from ..parts.part_runs import Cluster, make_parts
from ..parts.part_tasks import Load
from ..required import require
from ..text.doc_files import save_docs
from .doc_rows import check_attributes, make_rows, write_rows
from .load_inputs import to_docs

PART = 200  # docs
FORMATS = ("parquet", "jsonl")  # of attributes


class AnnotationMaker:
    """Makes files of annotated docs, or of chosen attributes of their tokens.

    pipeline (str): The name of an installed pipeline, or its folder, which all workers
        of a cluster must see.
    attributes (list[str]): Attributes of tokens; none for whole docs.
    kind (str): The format of attributes.
    """

    def __init__(self, pipeline: str, attributes: list[str], kind: str) -> None:
        self.pipeline = pipeline
        self.attributes = attributes
        self.kind = kind
        self.suffix = f".{kind}" if attributes else ".spacy"
        self._nlp: Language | None = None
        self._files = ""
        nlp = self._load()
        check_attributes(attributes)
        self._files = _fingerprint(nlp)
        self.fingerprint = fingerprint_data([self._files, attributes, self.suffix])

    def write(self, first: int, items: list[Any], path: Path) -> int:
        """Annotate docs and write them, or their attributes; see PartMaker.

        RETURNS (int): The number of docs, or of tokens if attributes are written.
        """
        nlp = self._load()
        try:
            docs: list[Doc] = list(nlp.pipe(to_docs(nlp, items)))
        except ValueError as error:
            raise ValueError(
                f"found an error in docs {first} to {first + len(items) - 1}: {error}"
            ) from error
        if not self.attributes:
            save_docs(docs, path)
            return len(docs)
        rows = list(chain.from_iterable(self._make_rows(docs, first)))
        write_rows(rows, self.attributes, path, self.kind)
        return len(rows)

    def _make_rows(self, docs: list[Doc], first: int) -> Iterator[list[dict[str, Any]]]:
        for number, doc in enumerate(docs, first):
            yield make_rows(doc, number, self.attributes)

    def _load(self) -> Language:
        """Load the pipeline once in each process."""
        if self._nlp is None:
            self._nlp = _load_pipeline(self.pipeline)
            if self._files not in ("", _fingerprint(self._nlp)):
                raise ValueError(
                    f"{self.pipeline}: found another pipeline on a worker of the "
                    "cluster; expected the same one on all of them"
                )
        return self._nlp

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_nlp": None}  # each process loads its own


def _load_pipeline(source: str) -> Language:
    """Load a pipeline. Raise ValueError if it is none, such as another package, which
    has no `load`, or a `load` for something else."""
    try:
        nlp = spacy.load(source)
    except Exception as error:  # spaCy raises many kinds of errors
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{source}: cannot be loaded as a pipeline: {reason}"
        ) from None
    if not isinstance(nlp, Language):
        raise ValueError(
            f"{source}: found a package that loads no pipeline; expected one that does"
        )
    return nlp


def _fingerprint(nlp: Language) -> str:
    """Fingerprint the files that a pipeline was loaded from."""
    return fingerprint_path(nlp.path)


def check_annotation_target(
    path: Path, attributes: list[str], kind: str, cluster: Cluster | None
) -> None:
    """Raise ValueError if a module is missing, or if the path cannot be a folder for
    parts. Call this first, because annotating may take hours."""
    if kind not in FORMATS:
        raise ValueError(
            f"found the format '{kind}'; expected one of {', '.join(FORMATS)}"
        )
    if cluster is not None:
        require("ray.data", "cluster")
    if attributes and kind == "parquet":
        require("pyarrow", "parquet")
    check_part_folder(path)


def annotate_folder(
    pipeline: str,
    load: Load,
    path: Path,
    *,
    attributes: list[str],
    kind: str = FORMATS[0],
    cluster: Cluster | None = None,
    problems: Counter[str],
    size: int = PART,
    on_progress: Callable[[int], None] = lambda n: None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Annotate all docs and write them to files in a folder. If an earlier run with the
    same pipeline and docs was interrupted, its parts are used.

    pipeline, attributes, kind: As for AnnotationMaker.
    load (Load): Loads texts or docs, as `load_inputs` does.
    size (int): The number of docs in a part.
    RETURNS (dict[str, Any]): The manifest; see `make_parts`.
    """
    check_annotation_target(path, attributes, kind, cluster)
    return make_parts(
        AnnotationMaker(pipeline, attributes, kind),
        load,
        path,
        size,
        cluster=cluster,
        problems=problems,
        on_progress=on_progress,
        say=say,
    )
