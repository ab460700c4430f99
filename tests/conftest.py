"""Fixtures and options for all tests."""

import copy
import os
from pathlib import Path

# Some virtual machines report that the CPU has AMX, but kill every process that uses
# it. Without this variable, torch would use AMX for bfloat16. It must be set before
# torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# Tiny models are slower with more threads, above all if several processes run tests at
# the same time. These variables also reach the programs that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Threads that wait must not take the processor from the other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import spacy
import torch
from helpers.analysis import make_bilm, save
from helpers.models import Pair, load_random
from helpers.processes import find_children
from hypothesis import settings

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
)

settings.register_profile("no deadlines", deadline=None)  # busy machines are slow
settings.load_profile("no deadlines")


def pytest_addoption(parser):
    parser.addoption(
        "--gpu",
        action="store_true",
        help="run the tests that ask for `device` on a real GPU (needs cupy)",
    )
    parser.addoption(
        "--fuzz-seconds",
        type=float,
        default=0,
        help="let each test in tests/fuzz run for this long; by default, a few trials",
    )
    parser.addoption(
        "--fuzz-seed",
        default="0",
        help="the seed of tests/fuzz, or SEED/TRIAL to repeat one trial alone",
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
        require_cpu()  # only tests with the fixture `device` use the GPU


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config, log):
    """Let the processes of `pytest -n` begin with equal parts of the tests in their
    order, and then take tests from each other. By default they would take turns, and
    each would make the fixtures of almost every file."""
    from xdist.scheduler import WorkStealingScheduling

    if config.getoption("dist") == "load":
        return WorkStealingScheduling(config, log)
    return None


@pytest.fixture
def device(request, monkeypatch):
    """Make Thinc and spaCy use a GPU during a test.

    By default the GPU is simulated on the CPU (see helpers/strict_ops.py). With
    `pytest --gpu` it is a real one, on which transfers to the host are not counted.
    Tests without this fixture always run on the CPU.

    YIELDS (helpers.strict_device.Device): What tests use instead of numpy, so that they
        run on both kinds of GPU.
    """
    from helpers.strict_device import real_device, strict_device

    with (
        real_device()
        if request.config.getoption("--gpu")
        else strict_device(monkeypatch)
    ) as device:
        yield device


@pytest.fixture
def fuzz(request):
    """Return the trials of a property test (see helpers/fuzzing.py). Afterwards, print
    the number of the last trial, which pytest shows if the test has failed."""
    from helpers.fuzzing import Fuzz

    fuzz = Fuzz(
        request.config.getoption("--fuzz-seed"),
        request.config.getoption("--fuzz-seconds"),
    )
    yield fuzz
    print(f"tests/fuzz: {fuzz}")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Let torch use one thread, whatever the environment variables say."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left():
    """Check that no process that the tests of a file have started is still running."""
    before = find_children()
    yield
    assert find_children() - before == set()


@pytest.fixture
def two_threads(one_thread):
    """Let torch use two threads during a test, even on a machine with one core."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def random_pair():
    """Return the function load_random of helpers/models.py."""
    return load_random


@pytest.fixture
def tiny() -> Pair:
    """Make a biLM with 2 layers and all optional parts, for tests that need no special
    sizes."""
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


@pytest.fixture
def tiny_folder(tiny, tmp_path) -> str:
    """Save the biLM of the fixture `tiny` and return its folder."""
    tiny.bilm.save(tmp_path / "tiny")
    return str(tmp_path / "tiny")


@pytest.fixture
def make_nlp(tiny_folder):
    """Return a function that makes a pipeline with `elmo` and the biLM of `tiny`. Its
    arguments are the names of components before `elmo`, and settings of `elmo`. By
    default, a doc is cut at the sentence boundaries that components before `elmo` set.

    The language is "xx" here and in most tests, because the tokenizer of English has
    many exceptions, and a pipeline is made four times faster without them."""

    def make(*before, **settings):
        nlp = spacy.blank("xx")
        for name in before:
            nlp.add_pipe(name)
        given = {"bilm": tiny_folder, "segments": "auto", **settings}
        nlp.add_pipe("elmo", config=given)
        return nlp

    return make


@pytest.fixture
def encoded(monkeypatch) -> list[int]:
    """Return a list to which each call of a biLM appends the number of docs in its
    batch."""
    from helpers.tasks import count_encoded_docs

    return count_encoded_docs(monkeypatch)


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
                layer.projection.mul_(3.0)  # makes vectors as large as trained ones
    return bilm


@pytest.fixture
def published(_published, two_threads) -> BiLM:
    """Return a random biLM with the sizes of the smallest biLM that was published."""
    return copy.deepcopy(_published)


@pytest.fixture
def sentences() -> list[list[str]]:
    """Make twenty sentences of 0 to 24 words, with some unusual and long words."""
    rng = np.random.default_rng(0)
    vocab = [f"w{'ab' * (n % 9)}{n}" for n in range(60)]
    vocab += ["", "<S>", "한국어", "x" * 70, "naïve"]
    lengths = [0, 1, 1, 24, 12, 12, *rng.integers(1, 25, 14)]
    return [[vocab[k] for k in rng.integers(0, len(vocab), n)] for n in lengths]


@pytest.fixture
def bilm() -> BiLM:
    """Make a small biLM with random weights. Some files override this fixture."""
    return make_bilm()


@pytest.fixture
def source(bilm, tmp_path) -> Path:
    """Save the biLM of the fixture `bilm` and return its folder."""
    return save(bilm, tmp_path / "bilm")


@pytest.fixture
def deep_folder(tmp_path):
    """Make more nested folders than recursion can follow, and return the innermost."""
    folders = [tmp_path / "a"]
    for _ in range(1099):
        folders.append(folders[-1] / "a")
    for folder in folders:
        folder.mkdir()
    yield folders[-1]
    # pytest cannot delete them, because it uses recursion.
    for folder in reversed(folders):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
