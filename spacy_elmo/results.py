"""The forms of all result files, which the commands write and the report reads.

| file | written by | form |
|---|---|---|
| log.jsonl | pretrain | one `ConfigRow`, `StepRow` or `EvaluationRow` per line |
| any .json | evaluate | `Perplexity` |
| any .json | probe | `Probe` |
| any .json | neighbors | `Neighbors` |
| any .json | senses | `Senses` |
| compare.json | compare | `ComparisonResult` |
| runs/NAME.json, beside compare.json | compare | `RunResult` |
| speed.json, beside compare.json | compare | `Speeds` |
| metrics.json, or any .json | `spacy evaluate` | `PipelineScores` |

This file is long because it has all forms in one place.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from .files import write_atomically
from .fingerprints import fingerprint_data

CheckedT = TypeVar("CheckedT", bound="CheckedResult")
LOG_NAME = "log.jsonl"
METRICS_NAME = "metrics.json"
# The scores that are shown, in this order. The keys are patterns for spaCy's
# names of the scores, the values are labels.
METRICS = {
    r"tag_acc": "Tag accuracy",
    r"pos_acc": "Part-of-speech accuracy",
    r"morph_acc": "Morphology accuracy",
    r"lemma_acc": "Lemma accuracy",
    r"dep_uas": "Dependencies (UAS)",
    r"dep_las": "Labelled dependencies (LAS)",
    r"ents_f": "Entity F-score",
    r"cats_macro_f": "Category F-score",
    r"spans_(.+)_f": "Span F-score",  # the group is a key of doc.spans
}


def metric_label(name: str) -> str:
    """Return the label of a score, or its name if no pattern of METRICS matches."""
    for pattern, label in METRICS.items():
        match = re.fullmatch(pattern, name)
        if match is not None:
            return " ".join([label, *(f"({key})" for key in match.groups())])
    return name


def find_metrics(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the scores to show: those in METRICS that every run has.

    scores (Sequence[Mapping[str, Any]]): The scores of each run.
    """
    return [
        name
        for pattern in METRICS
        for name in sorted(scores[0])
        if re.fullmatch(pattern, name) and all(name in other for other in scores)
    ]


class Form(BaseModel):
    """Base class of the forms. Keys that a form does not declare are kept, so that
    files written by other versions can still be read."""

    model_config = ConfigDict(extra="allow")


def as_json(result: BaseModel) -> dict[str, Any]:
    """Convert a result to a dict for JSON, without the keys that were never set."""
    return result.model_dump(exclude_unset=True)


def write_result(path: Path, result: BaseModel) -> None:
    """Write a result file. The folder is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # srsly rounds numbers, and a checksum must match the numbers that are read again.
    text = json.dumps(as_json(result), indent=2, ensure_ascii=False) + "\n"
    # Halves of characters, as in names of files that are not in UTF-8, are escaped.
    contents = text.encode("utf-8", "backslashreplace")
    write_atomically(path, lambda part: part.write_bytes(contents))


# The number of a layer, or a name such as "mix".
Layer = int | str


# Pretraining


class ConfigRow(Form):
    """The first row of a pretraining log."""

    type: Literal["config"]
    step: int
    config: dict[str, Any]


class StepRow(Form):
    """A row of a pretraining log: a training step.

    words (int): How many words were processed since training began.
    seconds (float): How much time has passed since training began.
    """

    type: Literal["step"]
    step: int
    epoch: int
    words: int
    seconds: float
    forward_loss: float
    backward_loss: float
    gradient_norm: float
    learn_rate: float
    words_per_second: float


class Perplexity(Form):
    """Perplexity of a text in both directions.

    mean (float): The mean of forward and backward.
    unknown_rate (float | None): Share of the tokens that are not in the vocabulary.
    """

    kind: Literal["perplexity"] = "perplexity"
    forward: float
    backward: float
    mean: float
    n_tokens: int | None = None
    unknown_rate: float | None = None


class EvaluationRow(Perplexity):
    """A row of a pretraining log: the perplexity of the development text."""

    type: Literal["evaluation"]
    step: int
    epoch: int
    words: int
    seconds: float


# Probes


class ProbeRow(Form):
    """The accuracy of a classifier.

    layer (Layer | None): None for a baseline that uses no layer of the biLM.
    """

    name: str
    layer: Layer | None = None
    accuracy: float


class ProbeTask(Form):
    """What is predicted, and the accuracy of each classifier.

    train, dev (int): The number of examples in the training and development data.
    unseen (int): For senses, how many examples of the development data have a lemma
        that is not in the training data. They count as errors.
    """

    task: str
    train: int
    dev: int
    unseen: int = 0
    rows: list[ProbeRow] = Field(min_length=1)


class Probe(Form):
    """How well each layer alone predicts tags or senses.

    bilm (str): Where the biLM was loaded from: a path or the name of a bundled biLM.
    """

    kind: Literal["probe"]
    title: str = ""
    bilm: str = ""
    tasks: list[ProbeTask] = Field(min_length=1)


# Neighbours


class WordInContext(Form):
    """A word in its sentence.

    sentence (list[str] | str): The tokens, as a list or as a string with single spaces
        between them. A no-break space is part of a token.
    position (int): Index of the word in the tokens.
    """

    word: str
    sentence: list[str] | str
    position: int = Field(ge=0)

    @property
    def tokens(self) -> list[str]:
        sentence = self.sentence
        return sentence.split(" ") if isinstance(sentence, str) else sentence

    @model_validator(mode="after")
    def check(self) -> "WordInContext":
        if self.position >= len(self.tokens):
            raise ValueError("the position is outside of the sentence")
        return self


class Neighbor(WordInContext):
    """A word in its sentence whose vector is near that of the query."""

    cosine: float


class LayerNeighbors(Form):
    """The neighbours by the vectors of one layer, the nearest first."""

    layer: Layer
    neighbors: list[Neighbor]


class StaticNeighbor(Form):
    """A word without context whose vector is near that of the query."""

    word: str
    cosine: float


class NeighborQuery(WordInContext):
    """A word in its sentence, and its neighbours."""

    layers: list[LayerNeighbors] = []
    static: list[StaticNeighbor] | None = None


class Neighbors(Form):
    """The nearest neighbours of some words in context."""

    kind: Literal["neighbors"]
    title: str = ""
    queries: list[NeighborQuery] = Field(min_length=1)


# Senses


class Occurrence(Form):
    """A text in which text[start:end] is the word, and the sense of the word there."""

    text: str
    start: int = Field(ge=0)
    end: int
    sense: str

    @model_validator(mode="after")
    def check(self) -> "Occurrence":
        if not self.start < self.end <= len(self.text):
            raise ValueError("start and end do not mark a part of the text")
        return self


class LayerAccuracy(Form):
    """How often the nearest other occurrence of a word has the same sense, by the
    vectors of one layer."""

    layer: Layer
    accuracy: float


class MeanAccuracy(LayerAccuracy):
    """The accuracy of a layer as the mean over all words.

    majority (float): The share of a word's most frequent sense, as the mean over words.
    """

    majority: float


class SenseLayer(LayerAccuracy):
    """The accuracy of a layer for one word, and a map of the word's occurrences.

    points (list[list[float]]): Coordinates on the map, (n_occurrences, 2).
    """

    points: list[Annotated[list[float], Field(min_length=2, max_length=2)]]


class SenseWord(Form):
    """The occurrences of a word, and how each layer separates its senses.

    majority (float): Share of the most frequent sense.
    """

    word: str
    majority: float
    occurrences: list[Occurrence] = Field(min_length=1)
    layers: list[SenseLayer] = Field(min_length=1)

    @model_validator(mode="after")
    def check(self) -> "SenseWord":
        n = len(self.occurrences)
        if any(len(layer.points) != n for layer in self.layers):
            raise ValueError("each layer needs a point for each occurrence")
        return self


class Senses(Form):
    """Words with several senses.

    mean (list[MeanAccuracy]): The means over words, by layer.
    """

    kind: Literal["senses"]
    title: str = ""
    lang: str = ""
    words: list[SenseWord] = Field(min_length=1)
    mean: list[MeanAccuracy] = []

    @property
    def layers(self) -> list[Layer]:
        return [layer.layer for layer in self.words[0].layers]

    @model_validator(mode="after")
    def check(self) -> "Senses":
        for word in self.words:
            if [layer.layer for layer in word.layers] != self.layers:
                raise ValueError("all words need the same layers")
        return self


# Comparisons


class LayerMix(Form):
    """How a component weights the layers.

    task (str): The name of the component, followed by "(input)" or "(output)" if its
        model is a Tok2VecWithElmo.
    s (list[float]): The weight of each layer, (n_layers + 1,). Learned weights sum
        to 1.
    gamma (float): The scale of the weighted sum.
    """

    task: str
    s: list[float] = Field(min_length=1)
    gamma: float


class CheckedResult(Form):
    """A result that a later call uses again, if it is as it was written.

    checksum (str): Identifies all other values.
    """

    checksum: str = ""

    def add_checksum(self: CheckedT) -> CheckedT:
        """Return a copy with a checksum."""
        return self.model_copy(update={"checksum": self._compute_checksum()})

    def is_whole(self) -> bool:
        """Return whether no value has changed since the checksum was added."""
        return self.checksum == self._compute_checksum()

    def _compute_checksum(self) -> str:
        data = as_json(self)
        data.pop("checksum", None)
        return fingerprint_data(data)


class RunResult(CheckedResult):
    """The result of one training of a comparison.

    fingerprint (str): Identifies the config, the data and the versions.
    versions (dict[str, str]): The versions of the packages that affect the scores.
    test_scores (dict[str, float] | None): None if no test data was given.
    seconds (float): How long training and evaluation took.
    """

    fingerprint: str
    versions: dict[str, str]
    variant: str
    share: float
    seed: int
    scores: dict[str, float]
    test_scores: dict[str, float] | None
    mixes: list[LayerMix]
    seconds: float


class Speed(CheckedResult):
    """How fast a trained pipeline predicts.

    fingerprint (str): The fingerprint of the run that trained the pipeline.
    """

    fingerprint: str
    words_per_second: float


class Speeds(RootModel[dict[str, Speed]]):
    """The speeds of trained pipelines, by the name of the run."""


class Score(Form):
    """A score as the mean over all seeds.

    spread (float | None): Sample standard deviation; None with a single seed.
    values (list[float]): The score of each seed.
    """

    mean: float
    spread: float | None = None
    values: list[float] = []


class DataSize(Form):
    """The size of a share of the training data."""

    share: float
    docs: int
    words: int


class VariantResult(Form):
    """A variant of the pipeline, trained with a share of the training data.

    label (str): The name in tables.
    error_reduction (dict[str, float | None]): For each score, the reduction of errors
        relative to the baseline: 0.2 means 20 % fewer errors. None for the baseline
        itself, and if there is no baseline or it makes no errors.
    test_scores, test_error_reduction (dict): The scores and error reductions on the
        test data; empty if no test data was given.
    """

    name: str
    label: str = ""
    share: float = Field(default=1.0, gt=0.0)
    seeds: list[int] = []
    mixes: list[LayerMix] = []
    words_per_second: float | None = None
    scores: dict[str, Score]
    error_reduction: dict[str, float | None] = {}
    test_scores: dict[str, Score] = {}
    test_error_reduction: dict[str, float | None] = {}

    @property
    def title(self) -> str:
        return self.label or self.name


class ComparisonResult(Form):
    """Variants of a pipeline with ELMo and without it.

    task (str): The components that are compared.
    metrics (list[str]): The scores that are shown, by spaCy's names.
    """

    kind: Literal["compare"]
    title: str = ""
    task: str = ""
    metrics: list[str] = Field(min_length=1)
    shares: list[float] = []
    data: list[DataSize] = []
    variants: list[VariantResult] = Field(min_length=1)

    @property
    def full(self) -> list[VariantResult]:
        """Return the variants with the largest share of the training data."""
        largest = max(variant.share for variant in self.variants)
        return [variant for variant in self.variants if variant.share == largest]


# Trained pipelines


class PipelineScores(Form):
    """The scores of a trained pipeline, as `spacy evaluate` writes them: from 0 to 1 or
    None, as a whole and for each label.

    speed (float): Words per second.
    """

    speed: float

    @property
    def scores(self) -> dict[str, float]:
        """Return the scores to show, by spaCy's names."""
        extra = self.model_extra or {}
        known = {key: value for key, value in extra.items() if _is_number(value)}
        return {name: known[name] for name in find_metrics([known])}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


KINDS: dict[str, type[Form]] = {
    "perplexity": Perplexity,
    "probe": Probe,
    "compare": ComparisonResult,
    "senses": Senses,
    "neighbors": Neighbors,
    "scores": PipelineScores,
}
