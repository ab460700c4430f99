"""The config of a pretraining: all of its settings, their defaults and their limits."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from thinc.api import Config

from ..bilm.config import MAX_NUMBER, BiLMConfig
from ..config_templates import read_pretrain_template
from ..regular_files import read_text
from .config_errors import describe_error

Texts = str | list[str] | None
# Overriding one of these with null keeps the value of the file. So a spaCy project can
# pass all its variables to the command, even those that are not set.
NULLABLE = (
    "model.lstm.dim",
    "model.lstm.projection_dim",
    "model.lstm.n_layers",
    "training.max_minutes",
)


class Section(BaseModel):
    """A section of the config. Unknown settings are refused, and values of another type
    too, except that a float may be written as an int."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Paths(Section):
    """The files that a pretraining reads."""

    raw_text: Texts = Field(
        default=None, description="Text to train on: files, folders or glob patterns."
    )
    dev_text: Texts = Field(
        default=None,
        description="Text to evaluate on, in the same forms; see corpus.dev_share.",
    )
    output_vocab: str | None = Field(
        default=None,
        description="The words that the softmax predicts, in a file with one word per "
        "line. By default, the most frequent words of the text.",
    )
    initialize_from: str | None = Field(
        default=None, description="A biLM whose weights training starts from."
    )


class CorpusConfig(Section):
    """How text is divided into words, sentences and documents."""

    lang: str = Field(
        default="xx", description="A language of spaCy, for its tokenizer."
    )
    tokenizer: str | None = Field(
        default=None,
        description="A registered tokenizer to use instead of the language's.",
    )
    tokenized: bool = Field(
        default=False,
        description="The text is tokenized: one sentence per line, with spaces between "
        "words.",
    )
    encoding: str = Field(
        default="utf-8",
        description="The encoding of the text, by a name that Python knows, such as "
        "cp949.",
    )
    dev_share: float = Field(
        default=0.01,
        ge=0,
        lt=1,
        description="The share of documents to evaluate on if paths.dev_text is not "
        "set. They are not trained on.",
    )
    n_process: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Processes that tokenize; 0 for one on each core.",
    )
    folder: str | None = Field(
        default=None,
        description="Where the tokenized text is stored; by default, in the output "
        "folder.",
    )


class VocabConfig(Section):
    """Which words the softmax predicts, and how."""

    max_words: int = Field(
        default=50000, ge=1, description="The most words it can have."
    )
    min_count: int = Field(
        default=2, ge=0, description="How often a word must occur in the text."
    )
    softmax: Literal["auto", "full", "sampled", "adaptive"] = Field(
        default="auto",
        description="The kind of softmax. 'auto' is 'full' for a small vocabulary and "
        "'sampled' for a large one.",
    )
    n_samples: int = Field(
        default=8192,
        ge=1,
        description="Words that a sampled softmax compares the right one with.",
    )
    extend: bool = Field(
        default=False,
        description="If training starts from a biLM, add the frequent words of the new "
        "text to its vocabulary.",
    )


class OptimizerConfig(Section):
    """The optimizer and its parameters."""

    name: Literal["adagrad", "adamw"] = Field(
        default="adamw", description="The optimizer."
    )
    learn_rate: float = Field(
        default=0.001,
        gt=0,
        le=MAX_NUMBER,
        allow_inf_nan=False,
        description="The highest learning rate.",
    )
    initial_accumulator: float = Field(
        default=1.0,
        gt=0,
        le=MAX_NUMBER,
        allow_inf_nan=False,
        description="For adagrad: where its sums of squared gradients start.",
    )
    beta1: float = Field(
        default=0.9,
        ge=0,
        lt=1,
        description="For adamw: decay of the mean of gradients.",
    )
    beta2: float = Field(
        default=0.999,
        ge=0,
        lt=1,
        description="For adamw: decay of the mean of their squares.",
    )
    epsilon: float = Field(
        default=1e-8,
        gt=0,
        allow_inf_nan=False,
        description="For adamw: added to the divisor of a gradient.",
    )
    weight_decay: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="For adamw: decay of the weights of matrices.",
    )


class ScheduleConfig(Section):
    """How the learning rate changes during training."""

    decay: Literal["constant", "linear", "cosine", "inverse_sqrt"] = Field(
        default="constant",
        description="After the warmup, the rate stays (constant), falls to final_share "
        "of itself at the end of training (linear, cosine), or falls with the square "
        "root of the number of steps (inverse_sqrt).",
    )
    warmup_steps: int = Field(
        default=0,
        ge=0,
        description="Steps at the beginning in which the rate rises from 0.",
    )
    final_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="For linear and cosine: the share at the end.",
    )


class TrainingConfig(Section):
    """How the biLM is trained, and how long: the first limit that is reached ends the
    training."""

    seed: int = Field(
        default=0,
        ge=0,
        lt=2**32,
        description="For the weights, dropout and order of text.",
    )
    max_steps: int = Field(
        default=0, ge=0, description="Limit: updates of the weights; 0 for no limit."
    )
    max_epochs: int = Field(
        default=10, ge=0, description="Limit: passes over the text; 0 for no limit."
    )
    max_words: int = Field(
        default=0, ge=0, description="Limit: words that are trained on; 0 for no limit."
    )
    max_minutes: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="Limit: minutes of training; 0 for no limit.",
    )
    patience: int = Field(
        default=0,
        ge=0,
        description="Limit: evaluations in a row that are no better than the best one; "
        "0 for no limit.",
    )
    batch_size: int = Field(
        default=64, ge=1, description="Parts of the text that are read side by side."
    )
    window: int = Field(
        default=20,
        ge=1,
        description="Tokens of each part that are read at a time. Gradients do not go "
        "back beyond them.",
    )
    accumulate: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Windows whose gradients are averaged for one step.",
    )
    dropout: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="Dropout of the inputs of each LSTM layer and of the softmax.",
    )
    carry_state: bool = Field(
        default=True,
        description="Carry the LSTM states from each sentence to the next. If false, "
        "each sentence starts from zero states, as it does when the biLM is used.",
    )
    sum_over_window: bool = Field(
        default=False,
        description="Multiply gradients by the window, as the original program does.",
    )
    clip_norm: float = Field(
        default=10.0,
        ge=0,
        allow_inf_nan=False,
        description="The largest norm of all gradients together; 0 for no limit.",
    )
    precision: Literal["float32", "bfloat16", "float16"] = Field(
        default="float32", description="The precision of matrix products."
    )
    compile: bool = Field(
        default=False,
        description="Compile the steps of the LSTMs with torch.compile, for GPUs. The "
        "first step then takes much longer.",
    )
    eval_frequency: int = Field(
        default=1000,
        ge=1,
        description="Steps between evaluations, each with a checkpoint.",
    )
    checkpoint_minutes: float = Field(
        default=10.0,
        ge=0,
        allow_inf_nan=False,
        description="The most minutes between two checkpoints.",
    )
    warmup_softmax_steps: int = Field(
        default=1000,
        ge=0,
        description="If training starts from a biLM without a softmax: steps in which "
        "only the new softmax is trained.",
    )
    grow: bool = Field(
        default=False,
        description="If training starts from a biLM: widen its LSTMs to the sizes of "
        "the model section. If false, it keeps its sizes.",
    )
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()

    @property
    def has_hard_limit(self) -> bool:
        """Return whether training has a limit other than patience, so that it ends."""
        limits = (self.max_steps, self.max_epochs, self.max_words, self.max_minutes)
        return any(limits)


class PretrainConfig(Section):
    """The whole config of a pretraining."""

    paths: Paths = Paths()
    model: dict[str, Any] = Field(
        default_factory=dict,
        description="The sizes of the biLM: a BiLMConfig as a dict, without a softmax.",
    )
    corpus: CorpusConfig = CorpusConfig()
    vocab: VocabConfig = VocabConfig()
    training: TrainingConfig = TrainingConfig()
    logger: dict[str, Any] = Field(
        default_factory=dict,
        description="A logger of spaCy to use instead of the table of evaluations.",
    )

    @model_validator(mode="after")
    def _check_sections_together(self) -> "PretrainConfig":
        if not self.paths.raw_text:
            raise ValueError("paths.raw_text is not set; expected files to train on")
        if not (self.training.has_hard_limit or self.training.patience):
            raise ValueError(
                "training has no limit; set one of max_steps, max_epochs, max_words, "
                "max_minutes and patience"
            )
        try:
            self.bilm_config()
        except ValueError as error:
            raise ValueError(f"model: {error}") from None
        return self

    def bilm_config(self) -> BiLMConfig:
        """Return the sizes of the biLM."""
        return BiLMConfig.from_dict(self.model)

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump()


def load_config(path: Path | None, overrides: dict[str, Any]) -> PretrainConfig:
    """Load a config file in spaCy's format.

    path (Path | None): The file; None for what we recommend for the language.
    overrides (dict[str, Any]): Values to use instead, by names such as "training.seed".
    RETURNS (PretrainConfig): The config. A wrong value raises a ValueError.
    """
    try:
        lang = overrides.get("corpus.lang", CorpusConfig().lang)
        text = read_pretrain_template(lang) if path is None else read_text(path)
        data = Config().from_str(text, interpolate=False)
        for name, value in overrides.items():
            if value is not None or name not in NULLABLE:
                _set(data, name, value)
        data = data.interpolate()
    except Exception as error:  # the parsers' errors have no common base class
        reason = " ".join(str(error).split()) or type(error).__name__
        path = path or Path("the options")
        raise ValueError(f"{path}: cannot be read as a config: {reason}") from None
    if "nlp" in data:
        raise ValueError(
            f"{path}: found a training config of spaCy, which is for `spacy train`; "
            "expected a config for pretraining, as `spacy elmo init-config pretrain` "
            "writes it"
        )
    try:
        return PretrainConfig.model_validate(dict(data))
    except ValidationError as error:
        raise ValueError(
            describe_error(error, PretrainConfig, data, overrides)
        ) from None


def _set(data: dict[str, Any], name: str, value: Any) -> None:
    """Set a value by its dotted name, also in a section that the file leaves out."""
    *sections, key = name.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ValueError(f"{name} is not a setting: {section} is not a section")
    data[key] = value
