"""What the result files of the other commands hold."""

from pathlib import Path
from typing import Annotated, Any

import srsly
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from .files import write_atomically


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a result file, and the folder it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda part: srsly.write_json(part, data))


# Commands write numbers of layers as well as names, such as "mix".
Layer = Annotated[str, BeforeValidator(str)]


class Step(BaseModel):
    """A row of a pretraining's log: a training step."""

    words: int
    seconds: float
    forward_loss: float
    backward_loss: float
    learn_rate: float
    words_per_second: float


class Perplexity(BaseModel):
    forward: float
    backward: float
    mean: float
    n_tokens: int | None = None
    unknown_rate: float | None = None


class Evaluation(Perplexity):
    """A row of a pretraining's log: perplexities of the held-out text."""

    words: int
    seconds: float


class Log(BaseModel):
    steps: list[Step]
    evaluations: list[Evaluation]

    @property
    def best(self) -> Evaluation | None:
        return min(self.evaluations, key=lambda row: row.mean, default=None)


class ProbeRow(BaseModel):
    """layer (Layer | None): None for a baseline that is no layer."""

    name: str
    layer: Layer | None = None
    accuracy: float


class ProbeTask(BaseModel):
    task: str
    train: int
    dev: int
    rows: list[ProbeRow] = Field(min_length=1)

    @property
    def best(self) -> ProbeRow | None:
        layers = [row for row in self.rows if row.layer is not None]
        return max(layers, key=lambda row: row.accuracy, default=None)

    @property
    def baseline(self) -> ProbeRow | None:
        others = [row for row in self.rows if row.layer is None]
        return max(others, key=lambda row: row.accuracy, default=None)


class Probe(BaseModel):
    title: str = ""
    bilm: str = ""
    tasks: list[ProbeTask] = Field(min_length=1)


class InContext(BaseModel):
    """A word in its sentence.

    sentence (list[str] | str): Tokens, or a text in which single spaces part
        them (a no-break space does not).
    position (int): Of the word among the tokens.
    """

    word: str
    sentence: list[str] | str
    position: int = Field(ge=0)

    @property
    def tokens(self) -> list[str]:
        sentence = self.sentence
        return sentence.split(" ") if isinstance(sentence, str) else sentence

    @model_validator(mode="after")
    def check(self) -> "InContext":
        if self.position >= len(self.tokens):
            raise ValueError("the position is outside of the sentence")
        return self


class Neighbor(InContext):
    cosine: float


class NeighborsOfLayer(BaseModel):
    layer: Layer
    neighbors: list[Neighbor]


class StaticNeighbor(BaseModel):
    word: str
    cosine: float


class Query(InContext):
    layers: list[NeighborsOfLayer] = []
    static: list[StaticNeighbor] | None = None


class Neighbors(BaseModel):
    title: str = ""
    queries: list[Query] = Field(min_length=1)


class Occurrence(BaseModel):
    """A text, and where the word is in it."""

    text: str
    start: int = Field(ge=0)
    end: int
    sense: str

    @model_validator(mode="after")
    def check(self) -> "Occurrence":
        if not self.start < self.end <= len(self.text):
            raise ValueError("start and end do not mark a part of the text")
        return self


class LayerAccuracy(BaseModel):
    layer: Layer
    accuracy: float


class SenseLayer(LayerAccuracy):
    """points (list[list[float]]): (n_occurrences, 2)."""

    points: list[Annotated[list[float], Field(min_length=2, max_length=2)]]


class SenseWord(BaseModel):
    """majority (float): Accuracy of the word's most frequent sense."""

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


class Senses(BaseModel):
    title: str = ""
    lang: str = ""
    words: list[SenseWord] = Field(min_length=1)

    @property
    def layers(self) -> list[str]:
        return [layer.layer for layer in self.words[0].layers]

    @model_validator(mode="after")
    def check(self) -> "Senses":
        for word in self.words:
            if [layer.layer for layer in word.layers] != self.layers:
                raise ValueError("all words need the same layers")
        return self


class Score(BaseModel):
    mean: float
    spread: float | None = None
    values: list[float] = []


class Mix(BaseModel):
    """What a task has learned: s (list[float]), the share of each layer, and gamma."""

    task: str
    s: list[float] = Field(min_length=1)
    gamma: float


class Variant(BaseModel):
    """share (float): Of the training data.
    test_scores, test_error_reduction (dict): As for the development data, if there was
        other data to test on.
    """

    name: str
    label: str = ""
    share: float = Field(default=1.0, gt=0.0)
    seeds: list[int] = []
    scores: dict[str, Score]
    error_reduction: dict[str, float | None] = {}
    test_scores: dict[str, Score] = {}
    test_error_reduction: dict[str, float | None] = {}
    mixes: list[Mix] = []
    words_per_second: float | None = None

    @property
    def title(self) -> str:
        return self.label or self.name


class Compare(BaseModel):
    title: str = ""
    task: str = ""
    metrics: list[str] = Field(min_length=1)
    variants: list[Variant] = Field(min_length=1)

    @property
    def full(self) -> list[Variant]:
        """RETURNS (list[Variant]): Those with the most training data."""
        largest = max(variant.share for variant in self.variants)
        return [variant for variant in self.variants if variant.share == largest]


KINDS: dict[str, type[BaseModel]] = {
    "perplexity": Perplexity,
    "probe": Probe,
    "compare": Compare,
    "senses": Senses,
    "neighbors": Neighbors,
}
