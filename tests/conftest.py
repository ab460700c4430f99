import copy
import os
from pathlib import Path

# Some virtual machines announce AMX and then kill every process that uses it, so the
# tests of bfloat16 do without. It must be set before torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import numpy as np
import pytest
import torch
from helpers.analysis import make_bilm, save
from helpers.models import Pair, load_random
from hypothesis import settings

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
)

settings.register_profile("no deadlines", deadline=None)  # no test asserts a time
settings.load_profile("no deadlines")


def pytest_addoption(parser):
    parser.addoption(
        "--gpu",
        action="store_true",
        help="run the tests that ask for `device` on a real GPU (needs cupy)",
    )


def pytest_configure(config):
    if config.getoption("--gpu"):
        from thinc.api import get_torch_default_device, require_cpu, require_gpu

        try:
            require_gpu()
            get_torch_default_device()
        except (ValueError, AssertionError, RuntimeError) as error:
            raise pytest.UsageError(
                "--gpu needs an NVIDIA GPU, a torch that sees it and the extra "
                f"'cuda12x' or 'cuda13x': {error}"
            ) from error
        require_cpu()  # tests that are for a GPU ask for it


@pytest.fixture
def device(request, monkeypatch):
    """Thinc and spaCy as on a GPU, for the time of a test: with arrays that are as
    strict as cupy's but not on a GPU (strict_ops.py), or with `pytest --gpu` with
    cupy's own, on a real one, where transfers to the host are not counted.

    Tests use the strict_device.Device that this gives and not numpy, so that both can
    run them. All other tests stay on the CPU, with the flag too."""
    from helpers.strict_device import real_device, strict_device

    with (
        real_device()
        if request.config.getoption("--gpu")
        else strict_device(monkeypatch)
    ) as device:
        yield device


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tiny models only lose by more, most of all when other work wants the cores."""
    torch.set_num_threads(1)


@pytest.fixture
def two_threads(one_thread):
    """Let torch use two threads, also on a machine with one core."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def random_pair():
    """load_random, to be called with a seed and options."""
    return load_random


@pytest.fixture
def tiny() -> Pair:
    """A biLM for whatever does not depend on sizes: 2 layers, all parts present."""
    return load_random(
        7,
        scale=0.3,
        lstm={
            "dim": 11,
            "projection_dim": 5,
            "n_layers": 2,
            "cell_clip": 3.0,
            "proj_clip": 3.0,
            "use_skip_connections": True,
        },
        char_cnn={
            "activation": "relu",
            "embedding": {"dim": 3},
            "filters": [[1, 4], [3, 7]],
            "max_characters_per_token": 50,
            "n_highway": 1,
        },
    )


@pytest.fixture(scope="session")
def _published() -> BiLM:
    torch.manual_seed(0)
    bilm = BiLM(
        BiLMConfig(
            encoder=BytesConfig(n_highway=1),
            lstm=LSTMConfig(dim=1024, projection_dim=128),
        )
    )
    with torch.no_grad():
        for layers in bilm.directions:
            for layer in layers:
                layer.projection.mul_(3.0)  # vectors as large as a trained model's
    return bilm


@pytest.fixture
def published(_published, two_threads) -> BiLM:
    """A biLM of random weights and the smallest of the published sizes."""
    return copy.deepcopy(_published)


@pytest.fixture
def sentences() -> list[list[str]]:
    """Twenty sentences of 0 to 24 words, some of them odd or long."""
    rng = np.random.default_rng(0)
    vocab = [f"w{'ab' * (n % 9)}{n}" for n in range(60)]
    vocab += ["", "<S>", "한국어", "x" * 70, "naïve"]
    lengths = [0, 1, 1, 24, 12, 12, *rng.integers(1, 25, 14)]
    return [[vocab[k] for k in rng.integers(0, len(vocab), n)] for n in lengths]


@pytest.fixture
def bilm() -> BiLM:
    """A small random one. Some files have another of this name."""
    return make_bilm()


@pytest.fixture
def source(bilm, tmp_path) -> Path:
    """The folder of that one."""
    return save(bilm, tmp_path / "bilm")
