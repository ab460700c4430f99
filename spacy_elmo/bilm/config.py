"""The config of a biLM. Values are checked on construction."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

ACTIVATIONS = ("relu", "tanh")
# 256 bytes, beginning and end of a sentence, beginning and end of a word, and padding.
BYTE_ROWS = 261

MAX_SIZE = 2**53  # programs that store numbers as floats round larger ones
MAX_NUMBER = 1e30  # far below what float32 can hold
MAX_DEPTH = 50  # of facts about the training, which are copied by recursion

ConfigT = TypeVar("ConfigT")


def _check_int(owner: Any, *names: str, minimum: int = 1) -> None:
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ValueError(
                f"'{name}' is {shorten(value)}; expected a whole number of at "
                f"least {minimum}"
            )
        if value > MAX_SIZE:
            raise ValueError(f"'{name}' is above 2**53; expected a smaller size")


def _check_choice(owner: Any, name: str, choices: Any) -> None:
    value = getattr(owner, name)
    # The types are compared, because 1 == 1.0 == True.
    if (type(value), value) not in [(type(choice), choice) for choice in choices]:
        expected = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"'{name}' is {shorten(value)}; expected one of {expected}")


def _check_clip(owner: Any, name: str) -> None:
    value = getattr(owner, name)
    if value is None:
        return
    # A comparison with NaN is false.
    if type(value) not in (int, float) or not 0 < value < MAX_NUMBER:
        raise ValueError(
            f"'{name}' is {shorten(value)}; expected a positive number or null"
        )


def shorten(value: Any) -> str:
    """Return the repr of a value for an error message, cut if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_deeper(value: Any, limit: int) -> bool:
    """Return whether dicts and lists are nested more deeply than a limit."""
    if not isinstance(value, dict | list | tuple):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return limit == 0 or any(_is_deeper(part, limit - 1) for part in inner)


def _check_convolutions(owner: Any) -> None:
    """Check the values that every character CNN has."""
    _check_int(owner, "char_dim")
    _check_int(owner, "n_highway", minimum=0)
    _check_int(owner, "max_chars", minimum=3)
    _check_choice(owner, "activation", ACTIVATIONS)
    filters = owner.filters
    if not isinstance(filters, list) or not filters:
        raise ValueError(
            f"'filters' is {shorten(filters)}; expected [[width, number], ...]"
        )
    for pair in filters:
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or not all(type(n) is int and 0 < n <= MAX_SIZE for n in pair)
        ):
            raise ValueError(f"'filters' has {shorten(pair)}; expected [width, number]")
        if pair[0] > owner.max_chars:
            raise ValueError(
                f"'filters' has width {pair[0]}, wider than a word of "
                f"max_chars = {owner.max_chars}"
            )


def _default_filters() -> list[list[int]]:
    return [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


@dataclass(frozen=True)
class BytesConfig:
    """An encoder that reads the UTF-8 bytes of words with a character CNN, as in
    published ELMo models.

    filters (list[list[int]]): The [width, number] of the filters of each width.
    max_chars (int): The longest word in bytes, including 2 for its beginning and end.
    n_rows (int): The number of character embeddings in the weights: 261, or 262 if row
        0 is an all-zero row for "no word".
    n_characters (int): The n_characters of the options file (261 or 262). It has no
        effect and is only kept to be written back.
    projection (bool | None): Whether the encoder ends in a projection; None means
        only if the sizes differ (see BiLMConfig.encoder_projection).
    """

    type: ClassVar[str] = "bytes"
    char_dim: int = 16
    filters: list[list[int]] = field(default_factory=_default_filters)
    n_highway: int = 1
    activation: str = "relu"
    max_chars: int = 50
    n_rows: int = BYTE_ROWS
    n_characters: int = BYTE_ROWS + 1
    projection: bool | None = None

    def __post_init__(self) -> None:
        _check_convolutions(self)
        _check_choice(self, "n_rows", (BYTE_ROWS, BYTE_ROWS + 1))
        _check_choice(self, "n_characters", (BYTE_ROWS, BYTE_ROWS + 1))
        _check_choice(self, "projection", (None, True, False))

    @property
    def n_features(self) -> int:
        return sum(number for _, number in self.filters)


@dataclass(frozen=True)
class CharsConfig:
    """An encoder that reads the characters of words, with an optional word embedding,
    as in ELMoForManyLangs. It always ends in a projection.

    reader (str): The network that reads the characters: "cnn" or "lstm".
    word_dim (int): The size of the word embedding; 0 for none.
    max_chars (int): As for BytesConfig, in characters. The LSTM reads whole words.
    """

    type: ClassVar[str] = "chars"
    reader: str = "cnn"
    char_dim: int = 50
    word_dim: int = 0
    filters: list[list[int]] = field(default_factory=_default_filters)
    n_highway: int = 2
    activation: str = "relu"
    max_chars: int = 50

    def __post_init__(self) -> None:
        _check_choice(self, "reader", ("cnn", "lstm"))
        _check_convolutions(self)
        _check_int(self, "word_dim", minimum=0)


@dataclass(frozen=True)
class WordsConfig:
    """An encoder that looks up words in a table of vectors.

    trainable (bool): Whether training changes the table.
    projection (bool | None): Whether the encoder ends in a projection; None means
        only if the sizes differ (see BiLMConfig.encoder_projection).
    max_chars (int | None): Cut words to this length before looking them up; None to
        leave them whole.
    """

    type: ClassVar[str] = "words"
    dim: int = 300
    trainable: bool = True
    projection: bool | None = None
    max_chars: int | None = None

    def __post_init__(self) -> None:
        _check_int(self, "dim")
        if self.max_chars is not None:
            _check_int(self, "max_chars")
        _check_choice(self, "trainable", (True, False))
        _check_choice(self, "projection", (None, True, False))

    @property
    def n_features(self) -> int:
        return self.dim


EncoderConfig = BytesConfig | CharsConfig | WordsConfig
ENCODER_CONFIGS: dict[str, type[Any]] = {
    cls.type: cls for cls in (BytesConfig, CharsConfig, WordsConfig)
}


@dataclass(frozen=True)
class LSTMConfig:
    """The two stacks of LSTMs.

    dim (int): The size of the cell c.
    projection_dim (int): The size of the output h, and of the inputs.
    cell_clip, proj_clip (float | None): Clip c and h to +- this; None to not clip.
    skip_connections (bool): Whether each layer but the first adds its inputs to its
        outputs.
    forget_bias (float): Added to the forget gate when the model runs.
    projection (bool): Whether a matrix projects the outputs from dim to projection_dim.
        Without it, the two must be equal.
    """

    dim: int = 1024
    projection_dim: int = 128
    n_layers: int = 2
    cell_clip: float | None = 3.0
    proj_clip: float | None = 3.0
    skip_connections: bool = True
    forget_bias: float = 1.0
    projection: bool = True

    def __post_init__(self) -> None:
        _check_int(self, "dim", "projection_dim", "n_layers")
        _check_clip(self, "cell_clip")
        _check_clip(self, "proj_clip")
        bias = self.forget_bias
        if type(bias) not in (int, float) or not abs(bias) < MAX_NUMBER:
            raise ValueError(
                f"'forget_bias' is {shorten(bias)}; expected a finite number"
            )
        _check_choice(self, "skip_connections", (True, False))
        _check_choice(self, "projection", (True, False))
        if not self.projection and self.dim != self.projection_dim:
            raise ValueError(
                f"'projection' is false with dim = {self.dim} and projection_dim = "
                f"{self.projection_dim}; expected equal sizes or projection = true"
            )


@dataclass(frozen=True)
class SoftmaxConfig:
    """The output layer, shared by both directions.

    type (str): "full", "sampled" or "adaptive".
    n_samples (int): The number of words that a sampled softmax draws.
    cutoffs (list[int] | None): The word numbers at which the clusters of rare words of
        an adaptive softmax begin; None for default ones.
    """

    n_words: int
    type: str = "full"
    n_samples: int = 8192
    cutoffs: list[int] | None = None

    def __post_init__(self) -> None:
        _check_choice(self, "type", ("full", "sampled", "adaptive"))
        _check_int(self, "n_words", "n_samples")
        if self.type == "adaptive" and self.n_words < 3:
            raise ValueError(
                f"an adaptive softmax needs 3 words or more, found {self.n_words}"
            )
        if self.type == "sampled" and self.n_samples >= self.n_words:
            raise ValueError(
                f"'n_samples' is {self.n_samples} with {self.n_words} words; expected "
                'fewer samples than words, or type = "full"'
            )
        cuts = self.cutoffs
        if cuts is not None and (
            not isinstance(cuts, list)
            or not all(type(cut) is int and 0 < cut < self.n_words for cut in cuts)
            or sorted(set(cuts)) != list(cuts)
            or not cuts
        ):
            raise ValueError(
                f"'cutoffs' is {cuts!r}; expected rising whole numbers between 0 and "
                f"{self.n_words}"
            )


@dataclass(frozen=True)
class BiLMConfig:
    """Everything that is needed to construct a biLM.

    training (dict[str, Any]): Facts about how it was trained, in any form. They are
        loaded and saved with the model, which does not use them.
    """

    encoder: EncoderConfig = field(default_factory=BytesConfig)
    lstm: LSTMConfig = field(default_factory=LSTMConfig)
    softmax: SoftmaxConfig | None = None
    training: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("lang", "tokenizer"):
            if not isinstance(self.training.get(key), (str, type(None))):
                raise ValueError(
                    f"'{key}' of section 'training' is "
                    f"{shorten(self.training[key])}; expected a string or null"
                )
        if _is_deeper(self.training, MAX_DEPTH):
            raise ValueError(
                "section 'training' is nested too deeply; expected at most "
                f"{MAX_DEPTH} levels"
            )
        if self.encoder_projection is False and (
            getattr(self.encoder, "n_features", None) != self.lstm.projection_dim
        ):
            raise ValueError(
                "'projection' of the encoder is false although its features and "
                f"projection_dim = {self.lstm.projection_dim} differ in size"
            )

    @property
    def encoder_projection(self) -> bool:
        """Return whether the token encoder ends in a linear projection: always with a
        CharsConfig, otherwise as configured, or by default if the sizes differ."""
        if isinstance(self.encoder, CharsConfig):
            return True
        if self.encoder.projection is not None:
            return self.encoder.projection
        return self.encoder.n_features != self.lstm.projection_dim

    @property
    def width(self) -> int:
        """Return the width of a layer: both directions together."""
        return 2 * self.lstm.projection_dim

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        data["encoder"] = {"type": self.encoder.type, **data["encoder"]}
        return data

    @classmethod
    def from_dict(cls, data: Any) -> "BiLMConfig":
        """Make a config from the result of to_dict. Raise a ValueError that names the
        key if anything is missing, unknown or wrong.

        data (Any): Parsed JSON.
        RETURNS (BiLMConfig): The config.
        """
        if not isinstance(data, dict):
            raise ValueError(f"expected a JSON object, found {type(data).__name__}")
        unknown = [key for key in data if key not in [f.name for f in fields(cls)]]
        if unknown:
            raise ValueError(f"found an unknown section '{unknown[0]}'")
        for section in ("encoder", "lstm"):
            if not isinstance(data.get(section), dict):
                raise ValueError(f"no section '{section}'")
        kind = data["encoder"].get("type")
        if not isinstance(kind, str) or kind not in ENCODER_CONFIGS:
            known = ", ".join(ENCODER_CONFIGS)
            raise ValueError(
                f"encoder 'type' is {shorten(kind)}; expected one of {known}"
            )
        encoder = {k: v for k, v in data["encoder"].items() if k != "type"}
        softmax = data.get("softmax")
        if softmax is not None:
            softmax = _from_dict(SoftmaxConfig, softmax, "softmax")
        training = data.get("training", {})
        if not isinstance(training, dict):
            raise ValueError(
                f"section 'training' is {shorten(training)}; expected an object"
            )
        return cls(
            encoder=_from_dict(ENCODER_CONFIGS[kind], encoder, "encoder"),
            lstm=_from_dict(LSTMConfig, data["lstm"], "lstm"),
            softmax=softmax,
            training=training,
        )


def _from_dict(cls: type[ConfigT], data: Any, section: str) -> ConfigT:
    if not isinstance(data, dict):
        raise ValueError(f"section '{section}' is {shorten(data)}; expected an object")
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    unknown = [key for key in data if key not in known]
    if unknown:
        raise ValueError(
            f"section '{section}' has an unknown key '{unknown[0]}'; known are "
            + ", ".join(known)
        )
    try:
        return cls(**data)
    except TypeError as error:
        raise ValueError(f"section '{section}': {error}") from None
