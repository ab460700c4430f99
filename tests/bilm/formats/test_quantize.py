"""Store weights in fewer bits."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from spacy_elmo import load_bilm
from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, SoftmaxConfig
from spacy_elmo.bilm.formats.quantize import dequantize, quantize
from spacy_elmo.cli import app

SENTENCES = [["Snow", "fell", "on", "the", "bank", "."], ["눈이", "온다"]]
VOCAB = ["<S>", "</S>", "<UNK>", "snow", "bank"]


@pytest.fixture
def bilm():
    torch.manual_seed(0)
    config = BiLMConfig(
        encoder=BytesConfig(char_dim=8, filters=[[1, 16], [3, 48]]),
        lstm=LSTMConfig(dim=96, projection_dim=32),
        softmax=SoftmaxConfig(len(VOCAB)),
    )
    return BiLM(config, vocab=VOCAB).eval()


def random_array(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def size(folder):
    return (folder / "weights.safetensors").stat().st_size


@pytest.mark.parametrize("dtype, atol", [("float16", 2e-3), ("int8", 3e-2)])
def test_vectors_hardly_change(bilm, tmp_path, dtype, atol):
    bilm.save(tmp_path / "full")
    bilm.save(tmp_path / dtype, dtype=dtype)
    small = load_bilm(tmp_path / dtype)
    assert all(weight.dtype == torch.float32 for weight in small.parameters())
    for one, two in zip(bilm.embed(SENTENCES), small.embed(SENTENCES)):
        assert np.allclose(one, two, atol=atol)
        assert not np.array_equal(one, two)
    share = size(tmp_path / dtype) / size(tmp_path / "full")
    assert share < {"float16": 0.55, "int8": 0.35}[dtype]
    assert torch.allclose(bilm.softmax.weight, small.softmax.weight, atol=atol)


def test_storing_twice_changes_no_weight(bilm, tmp_path):
    for dtype in ("float16", "int8"):
        bilm.save(tmp_path / "one", dtype=dtype)
        once = load_bilm(tmp_path / "one")
        once.save(tmp_path / "two", dtype=dtype)
        twice = load_bilm(tmp_path / "two")
        for name, weight in once.state_dict().items():
            assert torch.allclose(weight, twice.state_dict()[name], rtol=1e-6, atol=0)


def test_int8_steps_are_a_127th_of_the_largest_weight_of_a_column():
    weight = random_array(40, 7) * np.float32([1e-3, 1, 10, 1, 0, 1, 100])
    stored = quantize({"w": weight}, "int8")
    error = abs(dequantize(stored["w"], stored["w.scales"]) - weight).max(0)
    assert (error <= abs(weight).max(0) / 127 / 2 * 1.001).all()


def test_int8_is_for_the_largest_matrices():
    arrays = {"large": random_array(40, 30), "half": random_array(20, 30)}
    stored = quantize({**arrays, "vector": random_array(9000)}, "int8")
    kinds = {name: array.dtype for name, array in stored.items()}
    assert kinds.pop("large") == np.int8
    assert kinds.pop("large.scales") == np.float32
    assert kinds == {"half": np.float16, "vector": np.float16}


def test_convert_command(bilm, tmp_path):
    bilm.save(tmp_path / "full")
    args = ["convert", str(tmp_path / "full"), str(tmp_path / "small")]
    result = CliRunner().invoke(app, [*args, "--dtype", "int8", "--no-softmax"])
    assert result.exit_code == 0, result.output
    assert size(tmp_path / "small") < size(tmp_path / "full") / 2.5
    assert load_bilm(tmp_path / "small").softmax is None
    assert not (tmp_path / "small" / "vocab.txt").exists()


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_weights_that_float16_cannot_hold_are_refused(dtype):
    arrays = {"large": random_array(40, 30), "bias": np.float32([1, -70_000])}
    with pytest.raises(ValueError, match="found -70000.0 in 'bias'; expected at most"):
        quantize(arrays, dtype)


def test_impossible_dtypes_are_refused(bilm, tmp_path):
    with pytest.raises(
        ValueError, match="expected one of stored, float32, float16, int8"
    ):
        bilm.save(tmp_path / "x", dtype="int4")
    bilm.save(tmp_path / "full")
    args = ["convert", str(tmp_path / "full"), str(tmp_path / "x")]
    result = CliRunner().invoke(app, [*args, "--dtype", "int8", "--to", "hdf5"])
    assert result.exit_code == 1
    assert "expected float32" in result.output
