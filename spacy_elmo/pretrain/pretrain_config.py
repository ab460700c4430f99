"""The config of a pretraining, filled with defaults and checked at once."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import (
    Any,
    TypeVar,
    get_type_hints,
)

from thinc.api import Config

from ..bilm.config import BiLMConfig

ConfigT = TypeVar("ConfigT")
Texts = str | list[str] | None
# Given as null, these stay as the config has them: a project can hand its variables on.
NULLABLE = (
    "model.lstm.dim",
    "model.lstm.projection_dim",
    "model.lstm.n_layers",
    "training.max_minutes",
)

Range = tuple[str, Callable[[float], bool]]
ONE: Range = ("1 or more", lambda value: value >= 1)
ZERO: Range = ("0 or more", lambda value: value >= 0)
POSITIVE: Range = ("more than 0", lambda value: 0 < value < math.inf)
SHARE: Range = ("0 to 1", lambda value: 0 <= value <= 1)
PART: Range = ("0 or more and less than 1", lambda value: 0 <= value < 1)
RANGES: dict[str, Range] = {
    "corpus.dev_share": PART,
    "corpus.n_process": ZERO,
    "vocab.max_words": ONE,
    "vocab.min_count": ZERO,
    "vocab.n_samples": ONE,
    "training.seed": ZERO,
    "training.max_steps": ZERO,
    "training.max_epochs": ZERO,
    "training.max_words": ZERO,
    "training.max_minutes": ZERO,
    "training.patience": ZERO,
    "training.batch_size": ONE,
    "training.window": ONE,
    "training.accumulate": ONE,
    "training.dropout": PART,
    "training.clip_norm": ZERO,
    "training.eval_frequency": ONE,
    "training.checkpoint_minutes": ZERO,
    "training.warmup_softmax_steps": ZERO,
    "training.optimizer.learn_rate": POSITIVE,
    "training.optimizer.initial_accumulator": POSITIVE,
    "training.optimizer.beta1": PART,
    "training.optimizer.beta2": PART,
    "training.optimizer.epsilon": POSITIVE,
    "training.optimizer.weight_decay": ZERO,
    "training.schedule.warmup_steps": ZERO,
    "training.schedule.final_share": SHARE,
}


@dataclass
class Paths:
    """raw_text: Files, folders or patterns to train on. dev_text: The same, held out.
    output_vocab: Words of the softmax, one a line; by default, the most frequent ones.
    initialize_from: A biLM to go on from."""

    raw_text: Texts = None
    dev_text: Texts = None
    output_vocab: str | None = None
    initialize_from: str | None = None


@dataclass
class CorpusSettings:
    """lang: A language of spaCy, for its tokenizer. tokenizer: Another registered one.
    tokenized: The text has a sentence a line, words parted by spaces. dev_share: Of the
    documents held out where there is no dev_text. n_process: 0 for all cores. folder:
    Where the prepared text is kept; by default, in the output folder."""

    lang: str = "xx"
    tokenizer: str | None = None
    tokenized: bool = False
    dev_share: float = 0.01
    n_process: int = 0
    folder: str | None = None


@dataclass
class VocabSettings:
    """max_words, min_count: Which words the softmax knows. softmax: full, sampled,
    adaptive, or auto: full for small vocabularies and sampled for large ones.
    n_samples: Words that a sampled one is trained against. extend: When going on from
    another biLM, add the frequent words of the new text to its vocabulary."""

    max_words: int = 50000
    min_count: int = 2
    softmax: str = "auto"
    n_samples: int = 8192
    extend: bool = False


@dataclass
class OptimizerSettings:
    """name: adagrad or adamw; the rest are their settings."""

    name: str = "adamw"
    learn_rate: float = 0.001
    initial_accumulator: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0


@dataclass
class ScheduleSettings:
    """The learning rate rises for warmup_steps, then stays (constant) or falls (linear,
    cosine) to final_share of itself at the end of training, or as the inverse root of
    the steps (inverse_sqrt)."""

    decay: str = "constant"
    warmup_steps: int = 0
    final_share: float = 0.0


@dataclass
class TrainingSettings:
    """Limits (the first that is reached ends training; 0 for none): max_steps,
    max_epochs, max_words, max_minutes; patience: evaluations without a better one.

    batch_size streams are read window tokens at a time, accumulate windows a step.
    carry_state: States go on from sentence to sentence; if not, each starts from zero,
    as it will in use. sum_over_window: Gradients are window times as large, as in the
    original program. clip_norm: Of all gradients together; 0 for none.
    warmup_softmax_steps: When going on from a biLM without a softmax, steps in which
    only the new one learns. grow: When going on from a biLM, widen its LSTMs to the
    sizes of the model section; if not, its own sizes hold."""

    seed: int = 0
    max_steps: int = 0
    max_epochs: int = 10
    max_words: int = 0
    max_minutes: float = 0.0
    patience: int = 0
    batch_size: int = 64
    window: int = 20
    accumulate: int = 1
    dropout: float = 0.1
    carry_state: bool = True
    sum_over_window: bool = False
    clip_norm: float = 10.0
    precision: str = "float32"
    eval_frequency: int = 1000
    checkpoint_minutes: float = 10.0
    warmup_softmax_steps: int = 1000
    grow: bool = False
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)

    @property
    def has_hard_limit(self) -> bool:
        """Whether training ends in any case."""
        limits = (self.max_steps, self.max_epochs, self.max_words, self.max_minutes)
        return any(limits)


@dataclass
class PretrainConfig:
    """All of it. model is what BiLMConfig takes, without a softmax."""

    paths: Paths = field(default_factory=Paths)
    model: dict[str, Any] = field(default_factory=dict)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocab: VocabSettings = field(default_factory=VocabSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    logger: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        training, vocab = self.training, self.vocab
        _choose("vocab.softmax", vocab.softmax, ("auto", "full", "sampled", "adaptive"))
        _choose(
            "training.optimizer.name", training.optimizer.name, ("adagrad", "adamw")
        )
        _choose(
            "training.precision", training.precision, ("float32", "bfloat16", "float16")
        )
        decays = ("constant", "linear", "cosine", "inverse_sqrt")
        _choose("training.schedule.decay", training.schedule.decay, decays)
        for name, (expected, fits) in RANGES.items():
            value: Any = self
            for key in name.split("."):
                value = getattr(value, key)
            if not fits(value):
                raise ValueError(f"{name} is {value}; expected {expected}")
        if not self.paths.raw_text:
            raise ValueError("paths.raw_text is not set; expected files to train on")
        if not (training.has_hard_limit or training.patience):
            raise ValueError(
                "training has no limit; set one of max_steps, max_epochs, max_words, "
                "max_minutes and patience"
            )
        try:
            self.bilm_config()
        except ValueError as error:
            raise ValueError(f"model: {error}") from None

    def bilm_config(self) -> BiLMConfig:
        return BiLMConfig.from_dict(self.model)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def load_config(path: Path, overrides: dict[str, Any]) -> PretrainConfig:
    """Read a config in spaCy's format.

    overrides (dict[str, Any]): Values by their dotted names.
    """
    try:
        data = Config().from_disk(path, interpolate=False)
        for name, value in overrides.items():
            if value is not None or name not in NULLABLE:
                _set(data, name, value)
        data = data.interpolate()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as a config: {error}") from None
    return _fill(PretrainConfig, dict(data), "")


def _set(data: dict[str, Any], name: str, value: Any) -> None:
    """Also in sections that the file leaves out."""
    *sections, key = name.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ValueError(f"{name} is no setting: {section} is no section")
    data[key] = value


def _fill(kind: type[ConfigT], data: dict[str, Any], where: str) -> ConfigT:
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{where}{key}"
        if key not in known:
            raise ValueError(
                f"{name} is no setting; expected one of {', '.join(sorted(known))}"
            )
        hint = hints[key]
        if is_dataclass(hint):
            if not isinstance(value, dict):
                raise ValueError(f"{name} is {value!r}; expected a section")
            value = _fill(hint, value, f"{name}.")  # type: ignore[arg-type]
        else:
            value = _checked(name, value, hint)
        values[key] = value
    return kind(**values)


def _checked(name: str, value: Any, hint: Any) -> Any:
    kinds = getattr(hint, "__args__", None) if hint not in (dict[str, Any],) else None
    kinds = kinds or (hint,)
    if float in kinds and type(value) is int:
        return float(value)
    for kind in kinds:
        origin = getattr(kind, "__origin__", kind)
        if type(value) is origin:
            if origin is not list or all(isinstance(item, str) for item in value):
                return value
    names = " or ".join(
        "nothing" if kind is type(None) else getattr(kind, "__name__", str(kind))
        for kind in kinds
    )
    raise ValueError(f"{name} is {value!r}; expected {names}")


def _choose(name: str, value: str, expected: Any) -> None:
    if value not in expected:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(expected)}")
