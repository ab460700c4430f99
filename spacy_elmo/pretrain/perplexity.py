"""Compute the perplexity of both directions over all words, without sampling."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..bilm import BiLMBase, NumpyBiLM
from ..bilm.engines.packing import plan
from .corpus import Stream
from .windows import WindowEncoder, WordNumbers, reverse_sentences

if TYPE_CHECKING:
    from .ranks import Ranks

MAX_BATCH_TOKENS = 4096
STREAM_WINDOW = 256
SLICE = 2**20  # tokens whose sentences are sorted by length together


class Perplexity(NamedTuple):
    """The perplexity of a biLM on a text.

    forward, backward (float): The perplexity of each direction.
    n_tokens (int): The number of words in the text.
    n_unknown (int): The number of these words that the softmax does not know.
    """

    forward: float
    backward: float
    n_tokens: int
    n_unknown: int

    @property
    def mean(self) -> float:
        """Return the mean of both directions, as the paper reports it."""
        return (self.forward + self.backward) / 2

    def as_dict(self) -> dict[str, Any]:
        rate = self.n_unknown / self.n_tokens if self.n_tokens else 0.0
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean,
            "n_tokens": self.n_tokens,
            "unknown_rate": rate,
        }


def evaluate(
    bilm: BiLMBase,
    stream: Stream,
    window_encoder: WindowEncoder,
    unknown: int,
    *,
    carry: bool = False,
    ranks: "Ranks | None" = None,
) -> Perplexity:
    """Compute the perplexity on a text. For a sentence of n words, each direction makes
    n + 1 predictions, since it predicts the sentence boundary too.

    bilm (BiLMBase): The biLM, with a softmax.
    stream (Stream): The text.
    window_encoder (WindowEncoder): Encodes the text for this biLM.
    unknown (int): The number in the softmax that all unknown words share.
    carry (bool): Carry the LSTM states from sentence to sentence. By default, each
        sentence starts from zero states.
    ranks (Ranks | None): Processes that share the work.
    """
    windows = _window_stream(stream) if carry else _batch_sentences(stream)
    if ranks is not None:
        windows = islice(windows, ranks.rank, None, ranks.size)
    compute_losses = _losses_function(bilm)
    # The loss of each direction, and the numbers of predictions of one direction, of
    # words and of unknown words.
    sums = np.zeros(5)
    state = bilm.zero_state(1)
    for numbers, mask in windows:
        if not carry:
            state = bilm.zero_state(mask.shape[1])
        losses, state = compute_losses(bilm, window_encoder, numbers, mask, state)
        words = numbers.targets[0][mask]
        words = words[words != 0]
        n_unknown = int((window_encoder.outputs[words] == unknown).sum())
        sums += [*losses, mask.sum(), len(words), n_unknown]
    if ranks is not None:
        sums = ranks.total_of(sums)
    *totals, n_predictions, n_words, all_unknown = sums.tolist()
    if not n_predictions:
        raise ValueError("found no sentence to evaluate on; expected some text")
    if np.isnan(totals).any():
        raise ValueError(
            "found a loss that is not a number; expected a biLM with finite weights"
        )
    forward, backward = (math.exp(min(700.0, t / n_predictions)) for t in totals)
    return Perplexity(forward, backward, int(n_words), int(all_unknown))


def _losses_function(bilm: BiLMBase) -> Callable[..., Any]:
    """Return the function that computes the losses of a window with the biLM's
    engine."""
    if isinstance(bilm, NumpyBiLM):
        from .numpy_losses import compute_losses

        return compute_losses
    from . import torch_losses

    return torch_losses.compute_losses


def _batch_sentences(stream: Stream) -> Iterator[tuple[WordNumbers, np.ndarray]]:
    """Divide a text into batches of sentences of similar length.

    YIELDS (tuple[WordNumbers, np.ndarray]): A batch, and a mask that is False for
        padding, (n_steps, n_rows).
    """
    for begin, end in _slices(stream):
        yield from _batch_slice(np.asarray(stream.tokens[begin:end]))


def _slices(stream: Stream) -> Iterator[tuple[int, int]]:
    """Divide a text into slices of some documents, so that memory does not grow with
    the text.

    YIELDS (tuple[int, int]): The index of the first token of a slice, and of the first
        token after it.
    """
    begin = 0
    for end in [*stream.blocks[1:].tolist(), len(stream.tokens)]:
        if end - begin >= SLICE or end == len(stream.tokens) > begin:
            yield begin, end
            begin = end


def _batch_slice(tokens: np.ndarray) -> Iterator[tuple[WordNumbers, np.ndarray]]:
    starts = np.flatnonzero(tokens == 0)
    lengths = np.diff(np.append(starts, len(tokens)))
    reverse_tokens = reverse_sentences(tokens)
    for packing in plan(lengths.tolist(), MAX_BATCH_TOKENS):
        n_steps = int(packing.lengths[0])
        inputs = np.zeros((2, n_steps + 1, len(packing.rows)), dtype=np.int32)
        for column, row in enumerate(packing.rows):
            place = slice(starts[row], starts[row] + lengths[row])
            inputs[0, : lengths[row], column] = tokens[place]
            inputs[1, : lengths[row], column] = reverse_tokens[place]
        mask = np.arange(n_steps)[:, None] < packing.lengths
        yield WordNumbers(inputs[:, :-1], inputs[:, 1:]), mask


def _window_stream(stream: Stream) -> Iterator[tuple[WordNumbers, np.ndarray]]:
    """Divide a text into windows with a single row.

    YIELDS (tuple[WordNumbers, np.ndarray]): A window, and a mask that is always True,
        (n_steps, 1).
    """
    tokens = np.asarray(stream.tokens)
    both = np.stack([tokens, reverse_sentences(tokens)]) if len(tokens) else tokens
    both = np.concatenate([both, np.zeros((2, 1), dtype=both.dtype)], 1)
    for at in range(0, len(tokens), STREAM_WINDOW):
        part = both[:, at : at + STREAM_WINDOW + 1, None]
        numbers = WordNumbers(part[:, :-1], part[:, 1:])
        yield numbers, np.ones(numbers.inputs.shape[1:], dtype=bool)
