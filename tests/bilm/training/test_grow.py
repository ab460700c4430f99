"""Grow a biLM into a larger one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.pretraining import train, write_config, write_text

from spacy_elmo import load_bilm
from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    Lexicon,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)
from spacy_elmo.bilm.training.grow import grow

WORDS = ["<S>", "</S>", "<UNK>", *(f"w{n}" for n in range(17))]
SENTENCES = [["w3", "w9", "눈", "w6", "w0"], ["w1"], ["w2", "w2", "w4"]]
BYTES = BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]])


def make(encoder=BYTES, lstm=None, softmax="full"):
    torch.manual_seed(0)
    lexicon = None
    if isinstance(encoder, WordsConfig):
        lexicon = Lexicon(words={word: n for n, word in enumerate(WORDS)})
    config = BiLMConfig(
        encoder,
        lstm or LSTMConfig(8, 5, cell_clip=0.5, proj_clip=0.4),
        softmax and SoftmaxConfig(len(WORDS), softmax, n_samples=10),
    )
    bilm = BiLM(config, lexicon=lexicon, vocab=WORDS if softmax else None)
    with torch.no_grad():  # otherwise biases are zero and clips have no effect
        for weight in bilm.parameters():
            weight.add_(torch.randn_like(weight))
    return bilm


def check_same(bilm, grown):
    """Check that the larger model computes everything that the smaller one does."""
    old, new = bilm.config.lstm.projection_dim, grown.config.lstm.projection_dim
    for small, large in zip(bilm.embed(SENTENCES), grown.embed(SENTENCES)):
        assert large.shape[:2] == small.shape[:2] and large.shape[2] == 2 * new
        kept = np.concatenate([large[..., :old], large[..., new : new + old]], -1)
        np.testing.assert_allclose(kept, small, rtol=1e-5, atol=1e-6)
    if bilm.softmax is not None:
        surprisal = zip(bilm.surprisal(SENTENCES), grown.surprisal(SENTENCES))
        for small, large in surprisal:
            np.testing.assert_allclose(large, small, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(8, 5), (9, 5), (8, 6), (16, 10), (11, 9)])
@pytest.mark.parametrize("softmax", ["full", "sampled", None])
def test_grown_computes_the_same(sizes, softmax):
    bilm = make(softmax=softmax)
    grown = grow(bilm, replace(bilm.config.lstm, dim=sizes[0], projection_dim=sizes[1]))
    assert (grown.config.lstm.dim, grown.config.lstm.projection_dim) == sizes
    assert grown.vocab == bilm.vocab
    check_same(bilm, grown)


@pytest.mark.parametrize(
    ("encoder", "lstm", "sizes"),
    [
        (WordsConfig(dim=4), LSTMConfig(8, 5, n_layers=3), (10, 7)),
        (WordsConfig(dim=5), LSTMConfig(8, 5), (10, 5)),
        (BYTES, LSTMConfig(5, 5, projection=False), (7, 7)),
        (BYTES, LSTMConfig(8, 5, skip_connections=False), (9, 6)),
        (BYTES, LSTMConfig(8, 5, n_layers=1), (8, 9)),  # 9 is the number of filters
    ],
)
def test_other_kinds_of_models_grow_too(encoder, lstm, sizes):
    bilm = make(encoder, lstm)
    check_same(bilm, grow(bilm, replace(lstm, dim=sizes[0], projection_dim=sizes[1])))


def test_adaptive_softmax_keeps_its_inputs():
    bilm = make(softmax="adaptive")
    check_same(bilm, grow(bilm, replace(bilm.config.lstm, dim=12)))
    with pytest.raises(ValueError, match="adaptive softmax"):
        grow(bilm, replace(bilm.config.lstm, projection_dim=6))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"dim": 7}, "expected no smaller sizes"),
        ({"projection_dim": 4}, "expected no smaller sizes"),
        ({"dim": 9, "n_layers": 3}, "nothing but dim and projection_dim"),
        ({"dim": 9, "cell_clip": 3.0}, "nothing but dim and projection_dim"),
    ],
)
def test_impossible_growth_is_refused(changes, expected):
    bilm = make()
    with pytest.raises(ValueError, match=expected):
        grow(bilm, replace(bilm.config.lstm, **changes))


def test_table_without_a_projection_keeps_its_width():
    bilm = make(WordsConfig(dim=5), LSTMConfig(8, 5))
    with pytest.raises(ValueError, match="encoder has no projection"):
        grow(bilm, LSTMConfig(8, 6))


@pytest.mark.slow
def test_every_new_unit_learns(tmp_path):
    """Check that new units get gradients although nothing uses their outputs at first:
    after some steps, no weight is zero, not even those that began as zero."""
    config = write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
    train(config, tmp_path / "small")
    sizes = {"model__lstm__dim": 24, "model__lstm__projection_dim": 12}
    source = str(tmp_path / "small" / "model-last")
    going_on = {"paths__initialize_from": source, "training__grow": True, **sizes}
    train(config, tmp_path / "large", training__max_steps=8, **going_on)
    grown = load_bilm(tmp_path / "large" / "model-last")
    assert (grown.config.lstm.dim, grown.config.lstm.projection_dim) == (24, 12)
    small = load_bilm(source).config.lstm.projection_dim
    assert (grown.softmax.weight[:, small:] != 0).all()
    for layers in grown.directions:
        for layer in layers:
            assert (layer.weight != 0).all() and (layer.projection != 0).all()


def test_sizes_of_the_source_are_the_default(tmp_path):
    config = write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
    train(config, tmp_path / "small", training__max_steps=1)
    source = str(tmp_path / "small" / "model-last")
    settings = {"paths__initialize_from": source, "model__lstm__dim": 24}
    train(config, tmp_path / "same", training__max_steps=1, **settings)
    assert load_bilm(tmp_path / "same" / "model-last").config.lstm.dim == 16
    settings["model__lstm__dim"] = 8
    with pytest.raises(ValueError, match="small.model-last: found .* from dim 16 and"):
        train(config, tmp_path / "less", training__grow=True, **settings)
