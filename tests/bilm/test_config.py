import json
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)


@pytest.mark.parametrize(
    "config",
    [
        BiLMConfig(),
        BiLMConfig(
            BytesConfig(filters=[[1, 2]], n_rows=262), LSTMConfig(cell_clip=None)
        ),
        BiLMConfig(CharsConfig(reader="lstm", word_dim=3), training={"steps": 7}),
        BiLMConfig(WordsConfig(dim=9, trainable=False), softmax=SoftmaxConfig(100)),
    ],
)
def test_json_round_trip(config):
    assert BiLMConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    "make, key",
    [
        (lambda: LSTMConfig(dim=0), "dim"),
        (lambda: LSTMConfig(dim=2.5), "dim"),
        (lambda: LSTMConfig(n_layers=0), "n_layers"),
        (lambda: LSTMConfig(n_layers=True), "n_layers"),
        (lambda: LSTMConfig(cell_clip=-1), "cell_clip"),
        (lambda: LSTMConfig(dim=8, projection_dim=4, projection=False), "projection"),
        (lambda: BytesConfig(filters=[]), "filters"),
        (lambda: BytesConfig(filters=[[3]]), "filters"),
        (lambda: BytesConfig(filters=[[0, 5]]), "filters"),
        (lambda: BytesConfig(filters=[[9, 5]], max_chars=8), "filters"),
        (lambda: BytesConfig(activation="gelu"), "activation"),
        (lambda: BytesConfig(n_characters=300), "n_characters"),
        (lambda: BytesConfig(n_highway=-1), "n_highway"),
        (lambda: CharsConfig(reader="gru"), "reader"),
        (lambda: WordsConfig(dim="300"), "dim"),
        (lambda: BiLMConfig(BytesConfig(projection=False)), "projection"),
        (lambda: BytesConfig(projection=0), "projection"),
        (lambda: BytesConfig(projection="false"), "projection"),
        (lambda: WordsConfig(projection=[]), "projection"),
        (lambda: WordsConfig(trainable=1), "trainable"),
        (lambda: BytesConfig(n_rows=261.0), "n_rows"),
        (lambda: BytesConfig(n_characters=262.0), "n_characters"),
        (lambda: LSTMConfig(skip_connections=1.0), "skip_connections"),
    ],
)
def test_bad_sizes_are_named(make, key):
    with pytest.raises(ValueError, match=f"'{key}'"):
        make()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"lstm": None}, "'lstm'"),
        ({"encoder": {"type": "subwords"}}, "subwords"),
        ({"encoder": {"type": "bytes", "char_dimm": 4}}, "char_dimm"),
        ({"softmax": {"type": "full"}}, "n_words"),
        ({"softmax": [1]}, "softmax"),
    ],
)
def test_bad_json_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        BiLMConfig.from_dict({**BiLMConfig().to_dict(), **change})


@pytest.mark.parametrize(
    "section, key, message",
    [
        ("lstm", "dim", "'dim' is a list that is nested too deeply"),
        ("training", "a", "section 'training' is nested too deeply"),
    ],
)
def test_json_that_is_nested_deeply_is_named(section, key, message):
    deep = []
    for _ in range(10_000):
        deep = [deep]
    data = {**BiLMConfig().to_dict(), section: {key: deep}}
    with pytest.raises(ValueError, match=message):
        BiLMConfig.from_dict(data)


def test_json_that_is_not_an_object_is_refused():
    with pytest.raises(ValueError, match="list"):
        BiLMConfig.from_dict([])


@pytest.mark.parametrize(
    "size, millions", [("original", 93.6), ("medium", 28.0), ("small", 13.6)]
)
@pytest.mark.slow
def test_published_sizes_have_the_published_numbers_of_weights(size, millions):
    path = Path(__file__).parents[2] / "configs" / f"bilm_{size}.json"
    config = BiLMConfig.from_dict(json.loads(path.read_text(encoding="utf-8")))
    with torch.device("meta"):
        n_weights = sum(weight.numel() for weight in BiLM(config).parameters())
    assert round(n_weights / 1e6, 1) == millions
