"""Make small biLMs and training windows."""

import numpy as np
import torch

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)
from spacy_elmo.bilm.lexicon import Lexicon
from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.training.softmax_backward import RowGradient
from spacy_elmo.pretrain.corpus import Stream
from spacy_elmo.pretrain.windows import Epochs, WindowEncoder

N_ROWS, N_WORDS = 3, 40
WORDS = [f"w{'x' * (n % 7)}{n}" for n in range(1, N_WORDS + 1)]


CLIPPED = {"cell_clip": 0.3, "proj_clip": 0.2}


def make_bilm(kind="full", *, encoder=None, dtype=torch.float64, scale=3.0, **lstm):
    torch.manual_seed(0)
    encoder = encoder or BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]], n_highway=1)
    lexicon = None
    if isinstance(encoder, WordsConfig):
        names = ["<S>", "</S>", "<UNK>", *WORDS[:20]]
        lexicon = Lexicon(words={word: row for row, word in enumerate(names)})
    config = BiLMConfig(
        encoder,
        LSTMConfig(**{"dim": 8, "projection_dim": 5, **CLIPPED, **lstm}),
        SoftmaxConfig(30, kind, n_samples=10),
    )
    bilm = BiLM(config, lexicon=lexicon).to(dtype)
    with torch.no_grad():  # larger weights, so that the clips have an effect
        for layers in bilm.directions:
            for layer in layers:
                layer.weight.mul_(scale)
                layer.bias.normal_()
    return bilm


def make_numbers(bilm, *, number=1, n_steps=7, forget=True):
    """Make a window of a random text, and what encodes it."""
    rng = np.random.default_rng(0)
    tokens = []
    for _ in range(60):
        tokens += [0, *rng.integers(1, N_WORDS + 1, rng.integers(1, 9)).tolist()]
    stream = Stream(np.array(tokens, np.int32), np.array([0]))
    outputs = np.array([0, *(min(n + 2, 29) for n in range(1, N_WORDS + 1))])
    window_encoder = WindowEncoder(bilm, WORDS, outputs, (1, 0), forget=forget)
    epochs = Epochs(stream, n_rows=N_ROWS, n_steps=n_steps, seed=0)
    return window_encoder, epochs.window(0, number)


def make_window(bilm, *, dtype=torch.float64, **options):
    window_encoder, numbers = make_numbers(bilm, **options)
    window = window_encoder.encode(numbers)
    keep = None if window.keep is None else window.keep.to(dtype)
    return window._replace(keep=keep)


def make_state(bilm):
    state = State.zeros(bilm.config.lstm, N_ROWS, bilm.weight)
    return State(*(torch.randn_like(part) * 0.1 for part in state))


def dense(gradient, like):
    if isinstance(gradient, RowGradient):
        assert len(gradient.rows.unique()) == len(gradient.rows)
        rows = gradient.rows.to(like.device)
        return torch.zeros_like(like).index_add_(0, rows, gradient.values)
    return gradient
