"""Count what a batch asks of a GPU, without a GPU: launches of kernels, waits of the
host, and bytes that are copied to it.

    python benchmarks/launches.py

It runs embedding and pretraining on the fake GPU of tests/helpers/fake_cuda.py, at the
size of the bundled English biLM and at the original size. Tensors there have shapes but
no values, so that this takes little time and little memory. Every operation that
computes counts as one launch.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # for helpers.fake_cuda

from helpers.fake_cuda import FakeGPU, fake_cuda  # noqa: E402

from spacy_elmo.bilm import BiLM  # noqa: E402
from spacy_elmo.bilm.lexicon import SPECIAL_WORDS  # noqa: E402
from spacy_elmo.pretrain.corpus import Stream  # noqa: E402
from spacy_elmo.pretrain.initial_bilm import make_softmax_config  # noqa: E402
from spacy_elmo.pretrain.pretrain_config import PretrainConfig, load_config  # noqa: E402
from spacy_elmo.pretrain.ranks import Ranks  # noqa: E402
from spacy_elmo.pretrain.trainer import Trainer  # noqa: E402

SIZES = {"bundled": "bundled_en.cfg", "original": "pretrain_original.cfg"}
N_SENTENCES, N_TOKENS = 64, 20  # of the batch to embed, and of its longest sentence
COLUMNS = ("launches", "of one more token step", "waits", "bytes to the host")
# What the version before StackedEngine and run_stacked needed, whose two directions ran
# one after the other.
BEFORE = {
    "bundled": {"inference": (1606, 68, 0, 0), "training": (4280, 160, 13, 76)},
    "original": {"inference": (1630, 68, 0, 0), "training": (4522, 152, 12, 76)},
}


class Counts(NamedTuple):
    """What a batch asks of a GPU.

    launches: The operations that compute.
    waits: The operations for which the host waits.
    bytes_to_host: The bytes that are copied to the host.
    operations: How often each operation computes.
    reasons: Why the host waits, each time.
    """

    launches: int
    waits: int
    bytes_to_host: int
    operations: dict[str, int]
    reasons: list[str]


def read_counts(gpu: FakeGPU) -> Counts:
    return Counts(
        gpu.launches.total(),
        len(gpu.waits),
        gpu.bytes_to_host,
        dict(gpu.launches.most_common()),
        list(gpu.waits),
    )


def load_size(size: str, **settings: Any) -> PretrainConfig:
    """Load the config of one of SIZES, with other values for some settings of its
    training section."""
    changed = {f"training.{name}": value for name, value in settings.items()}
    changed["paths.raw_text"] = "none"
    return load_config(ROOT / "configs" / SIZES[size], changed)


def make_bilm(config: PretrainConfig, words: list[str], device: torch.device) -> BiLM:
    """Make a biLM with weights that are not set."""
    names = [*SPECIAL_WORDS, *words]
    names += [f"_{n}" for n in range(config.vocab.max_words - len(names))]
    softmax = make_softmax_config(len(names), config.vocab)
    sizes = replace(config.bilm_config(), softmax=softmax)
    return BiLM(sizes, vocab=names, initialize=False).to(device)


def make_words() -> list[str]:
    return [f"w{'x' * (n % 9)}{n}" for n in range(20_000)]


def count_inference(config: PretrainConfig, n_tokens: int = N_TOKENS) -> Counts:
    """Count one batch of sentences, whose layers stay on the GPU.

    n_tokens (int): The tokens of the longest sentence.
    """
    words = make_words()
    lengths = [max(1, n_tokens - k % 5) for k in range(N_SENTENCES)]
    sentences = [words[20 * k : 20 * k + n] for k, n in enumerate(lengths)]
    with fake_cuda() as gpu:
        bilm = make_bilm(config, words, gpu.device)
        bilm.run([[]])  # prepares what depends only on the weights
        gpu.reset()
        bilm.run(sentences, max_batch_tokens=10**6)
        return read_counts(gpu)


def count_training(config: PretrainConfig) -> Counts:
    """Count one training step, with the optimizer and the report of its losses."""
    settings = config.training
    words = make_words()
    rng = np.random.default_rng(0)
    n_tokens = 3 * settings.batch_size * settings.window
    tokens = np.minimum(rng.zipf(1.2, n_tokens), len(words)).astype(np.int32)
    tokens[::25] = 0  # the beginning of a sentence
    stream = Stream(tokens, np.zeros(1, np.int64))
    corpus: Any = SimpleNamespace(words=words, train=stream)
    with fake_cuda() as gpu:
        bilm = make_bilm(config, words, gpu.device)
        trainer = Trainer(config, bilm, corpus, Path(), Ranks(gpu.device))
        gpu.reset()
        trainer.step()
        return read_counts(gpu)


def measure(size: str) -> dict[str, tuple[int, ...]]:
    """Count inference and training at a size.

    RETURNS (dict[str, tuple[int, ...]]): For each of them, the values of COLUMNS.
    """
    pairs = {
        "inference": (
            count_inference(load_size(size)),
            count_inference(load_size(size), N_TOKENS + 1),
        ),
        "training": (
            count_training(load_size(size)),
            # The same batch with one more step.
            count_training(load_size(size, window=21)),
        ),
    }
    return {
        part: (
            counts.launches,
            longer.launches - counts.launches,
            counts.waits,
            counts.bytes_to_host,
        )
        for part, (counts, longer) in pairs.items()
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"| size | batch | {' | '.join(COLUMNS)} |\n|{'---|' * (2 + len(COLUMNS))}")
    for size in SIZES:
        for part, now in measure(size).items():
            pairs = zip(BEFORE[size][part], now, strict=True)
            cells = [f"{old:,} → {new:,}" for old, new in pairs]
            print(f"| {size} | {part} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
