"""Compare the convolutions of training with autograd on CharCNN.convolve."""

import pytest
import torch

from spacy_elmo.bilm.config import BytesConfig
from spacy_elmo.bilm.encoders import make_encoder as make_uninitialized
from spacy_elmo.bilm.training.convolution import same_end
from spacy_elmo.bilm.word_ids import Boundary

WORDS = ["a", "bb", "눈이", "hello", "anti-establishment", Boundary.BEGIN, ""]


def make_encoder(**overrides):
    torch.manual_seed(0)
    settings = {"char_dim": 3, "filters": [[1, 4], [4, 5], [2, 3]], "max_chars": 24}
    config = BytesConfig(**{**settings, **overrides})
    encoder = make_uninitialized(config, 6, projection=True, lexicon=None)
    for module in encoder.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return encoder.double()


def outputs_and_gradients(encoder, groups):
    y = encoder(*groups)
    weights = dict(encoder.named_parameters())
    d_y = torch.arange(y.numel()).view_as(y).sin().to(y.dtype)
    return y, dict(zip(weights, torch.autograd.grad(y, list(weights.values()), d_y)))


def check(encoder, groups, monkeypatch):
    found, gradients = outputs_and_gradients(encoder, groups)
    monkeypatch.setattr(encoder.cnn, "merges_filters", lambda groups: False)
    expected, wanted = outputs_and_gradients(encoder, groups)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, wanted)
    assert gradients["cnn.embedding"].abs().max() > 0


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("size", [1, 3, len(WORDS)])
def test_outputs_and_gradients_are_those_of_autograd(monkeypatch, activation, size):
    encoder = make_encoder(activation=activation)
    pieces = [WORDS[i : i + size] for i in range(0, len(WORDS), size)]
    groups = [encoder.encode(piece) for piece in pieces]
    assert encoder.cnn.merges_filters(groups)
    check(encoder, groups, monkeypatch)


@pytest.mark.parametrize("n", range(14, 26))
def test_words_that_fill_their_row(monkeypatch, n):
    """Check long words: at the end of the row, a narrow filter has windows where a wide
    one has none."""
    word = "".join(chr(ord("a") + k) for k in range(n))
    encoder = make_encoder()
    check(encoder, [encoder.encode([word, "short"])], monkeypatch)


def test_same_end_checks_every_row():
    ids = torch.tensor([[1, 2, 0, 0, 0], [3, 3, 3, 3, 3]])
    assert same_end(ids, 3) and not same_end(ids, 4)
    assert not same_end(torch.tensor([[1, 2, 0, 0, 0], [1, 2, 3, 0, 0]]), 3)


def test_autocast_computes_in_a_shorter_dtype():
    encoder = make_encoder().float()
    groups = [encoder.encode(WORDS)]
    expected, wanted = outputs_and_gradients(encoder, groups)
    with torch.autocast("cpu", torch.bfloat16):
        assert encoder.cnn.merges_filters(groups)
        found, gradients = outputs_and_gradients(encoder, groups)
    assert found.dtype == torch.bfloat16
    assert (found - expected).norm() < 0.02 * expected.norm()
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        assert (gradient - wanted[name]).norm() < 0.1 * wanted[name].norm(), name
