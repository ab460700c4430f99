"""Compute the names and shapes of a model's weights from its config alone."""

from collections.abc import Iterator

from .config import BiLMConfig, BytesConfig, CharsConfig, SoftmaxConfig, WordsConfig
from .lexicon import Lexicon, n_rows

Shape = tuple[int, ...]
NamedShapes = Iterator[tuple[str, Shape]]


def expected_shapes(config: BiLMConfig, lexicon: Lexicon) -> dict[str, Shape]:
    """Return the shape of each array of a model by its name, in the order of the torch
    module's state_dict."""
    return dict(iterate_shapes(config, lexicon))


def iterate_shapes(config: BiLMConfig, lexicon: Lexicon) -> NamedShapes:
    """Yield the names and shapes of expected_shapes one by one. A caller that compares
    them with a file can stop at the first difference, even if a damaged config has a
    billion layers."""
    lstm = config.lstm
    yield from _encoder_shapes(config, lexicon)
    for direction in ("forward_layers", "backward_layers"):
        for j in range(lstm.n_layers):
            name = f"{direction}.{j}."
            yield name + "weight", (2 * lstm.projection_dim, 4 * lstm.dim)
            yield name + "bias", (4 * lstm.dim,)
            if lstm.projection:
                yield name + "projection", (lstm.dim, lstm.projection_dim)
    if config.softmax is not None:
        yield from _softmax_shapes(config.softmax, lstm.projection_dim)


def _encoder_shapes(config: BiLMConfig, lexicon: Lexicon) -> NamedShapes:
    encoder = config.encoder
    if isinstance(encoder, WordsConfig):
        yield "encoder.table", (n_rows(lexicon.words), encoder.dim)
    if isinstance(encoder, CharsConfig) and encoder.word_dim:
        yield "encoder.word_table", (n_rows(lexicon.words), encoder.word_dim)
    if config.encoder_projection:
        n_features, proj = count_features(config), config.lstm.projection_dim
        yield "encoder.projection.weight", (n_features, proj)
        yield "encoder.projection.bias", (proj,)
    if isinstance(encoder, BytesConfig):
        yield from _cnn_shapes("encoder.cnn.", encoder, encoder.n_rows)
    elif isinstance(encoder, CharsConfig) and encoder.reader == "cnn":
        rows = n_rows(lexicon.characters)
        yield from _cnn_shapes("encoder.chars.cnn.", encoder, rows)
    elif isinstance(encoder, CharsConfig):
        dim = encoder.char_dim
        yield "encoder.chars.embedding", (n_rows(lexicon.characters), dim)
        for suffix in ("l0", "l0_reverse"):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                shape = (4 * dim,) if "bias" in kind else (4 * dim, dim)
                yield f"encoder.chars.lstm.{kind}_{suffix}", shape


def count_features(config: BiLMConfig) -> int:
    """Count the inputs of the encoder's projection."""
    encoder = config.encoder
    if not isinstance(encoder, CharsConfig):
        return encoder.n_features
    if encoder.reader == "lstm":
        return encoder.word_dim + 2 * encoder.char_dim
    return encoder.word_dim + sum(number for _, number in encoder.filters)


def _cnn_shapes(name: str, config: BytesConfig | CharsConfig, rows: int) -> NamedShapes:
    n = sum(number for _, number in config.filters)
    yield name + "embedding", (rows, config.char_dim)
    for i, (width, number) in enumerate(config.filters):
        yield f"{name}weights.{i}", (width * config.char_dim, number)
    for i, (_, number) in enumerate(config.filters):
        yield f"{name}biases.{i}", (number,)
    for k in range(config.n_highway):
        yield f"{name}highways.{k}.weight", (n, 2 * n)
        yield f"{name}highways.{k}.bias", (2 * n,)


def _softmax_shapes(config: SoftmaxConfig, proj: int) -> NamedShapes:
    if config.type != "adaptive":
        yield "softmax.weight", (config.n_words, proj)
        yield "softmax.bias", (config.n_words,)
        return
    cutoffs = config.cutoffs or default_cutoffs(config.n_words)
    divisor = cluster_divisor(proj, len(cutoffs))
    yield "softmax.softmax.head.weight", (cutoffs[0] + len(cutoffs), proj)
    ends = [*cutoffs[1:], config.n_words]
    for i, (start, end) in enumerate(zip(cutoffs, ends)):
        size = int(proj // divisor ** (i + 1))
        yield f"softmax.softmax.tail.{i}.0.weight", (size, proj)
        yield f"softmax.softmax.tail.{i}.1.weight", (end - start, size)


def default_cutoffs(n_words: int) -> list[int]:
    """Choose the cutoffs of an adaptive softmax: a tenth of the vocabulary, but at most
    20,000 words, and half of it, but at most 200,000 words. A very small vocabulary
    gets only the first."""
    first = max(1, min(20_000, n_words // 10))
    second = min(200_000, n_words // 2)
    return [first, second] if first < second < n_words else [first]


def cluster_divisor(projection_dim: int, n_clusters: int) -> float:
    """Choose the divisor of an adaptive softmax: cluster k has vectors of size
    projection_dim // divisor**k. The limit keeps the size of the last cluster from
    being rounded down to 0."""
    return min(4.0, 0.999 * projection_dim ** (1 / n_clusters))
