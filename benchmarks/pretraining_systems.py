"""The systems that pretraining.py measures: our training loop and the plain one."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plain_bilm import PlainBiLM, PlainTraining, character_ids
from random_models import SIZES, cnn_flops, lstm_flops

from spacy_elmo.bilm import BiLM, SoftmaxConfig
from spacy_elmo.pretrain.corpus import Corpus
from spacy_elmo.pretrain.pretrain_config import (
    OptimizerConfig,
    Paths,
    PretrainConfig,
    TrainingConfig,
    VocabConfig,
)
from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.pretrain.trainer import Trainer
from spacy_elmo.pretrain.vocab import choose_words, softmax_numbers
from spacy_elmo.pretrain.windows import Epochs, WordNumbers

SETTLE = 0.3  # seconds before a timed call, until the last system's threads are idle
OPTIMIZER = OptimizerConfig(name="adagrad", learn_rate=0.2, initial_accumulator=1.0)


@dataclass(frozen=True)
class Setting:
    """The sizes of a measurement.

    size (str): The size of the biLM, a key of SIZES in random_models.py.
    n_words (int): The number of words in the softmax.
    n_samples (int): Words to sample per step and direction; 0 for the full softmax.
    batch (int): The rows of a window.
    window (int): The tokens per row of a window.
    sgemm (int): The size of the square matrices whose product shows how fast the
        machine can compute at most.
    """

    size: str
    n_words: int
    n_samples: int = 0
    batch: int = 64
    window: int = 20
    sgemm: int = 4096

    @property
    def name(self) -> str:
        if self.n_samples:
            return f"sampled softmax, {self.n_samples:,} of {self.n_words:,} words"
        return f"full softmax, {self.n_words:,} words"

    def flops(self, texts: list[list[str]]) -> float:
        """Count the floating point operations of our updates. Only matrix products and
        convolutions count.

        In the forward pass, LSTMs and softmax run once per token and direction, the
        character CNN once per distinct word. The backward pass takes twice as much, for
        the gradients of inputs and weights.

        texts (list[list[str]]): For each update, the words that the forward direction
            reads in the window, then those of the backward direction.
        """
        options = SIZES[self.size]
        width = options["lstm"]["projection_dim"]
        softmax = 2 * 2 * width * (self.n_samples or self.n_words)
        n_tokens = self.batch * self.window
        forward = sum(
            cnn_flops(options, [words])
            + lstm_flops(options, [words[:n_tokens]])
            + n_tokens * softmax
            for words in texts
        )
        return 3 * forward


SETTINGS = {
    "small": [Setting("small", 20_000), Setting("small", 200_000, 8192)],
    "tiny": [  # for trying the benchmark out
        Setting("tiny", 500, batch=16, window=10, sgemm=512),
        Setting("tiny", 2000, 100, batch=16, window=10, sgemm=512),
    ],
}


class OneWindow(Epochs):
    """Windows that the backward direction reads from the end of the window to its
    beginning. In Epochs it reads the sentences in order, each from its end. OneWindow
    is simpler and has fewer distinct words, but the backward state that is carried to
    the next window does not fit the text there."""

    def window(self, epoch: int, number: int) -> WordNumbers:
        (inputs, _), (targets, _) = super().window(epoch, number)
        before = np.zeros_like(inputs[:1])
        if number:
            before = super().window(epoch, number - 1).inputs[0, -1:]
        previous = np.concatenate([before, inputs[:-1]])
        return WordNumbers(
            np.stack([inputs, inputs[::-1]]), np.stack([targets, previous[::-1]])
        )


def make_epochs(setting: Setting, corpus: Corpus, one_window: bool) -> Epochs:
    kind = OneWindow if one_window else Epochs
    return kind(corpus.train, n_rows=setting.batch, n_steps=setting.window, seed=0)


class Ours:
    """The training loop of spacy_elmo, one update at a time.

    one_window (bool): Read the windows of OneWindow instead of Epochs.
    """

    def __init__(
        self,
        setting: Setting,
        corpus: Corpus,
        workdir: Path,
        precision: str = "float32",
        one_window: bool = False,
    ) -> None:
        options = SIZES[setting.size]
        characters, lstm = options["char_cnn"], options["lstm"]
        model = {
            "encoder": {
                "type": "bytes",
                "char_dim": characters["embedding"]["dim"],
                "filters": characters["filters"],
                "n_highway": characters["n_highway"],
            },
            "lstm": {k: lstm[k] for k in ("dim", "projection_dim", "n_layers")},
        }
        training = TrainingConfig(
            batch_size=setting.batch,
            window=setting.window,
            precision=precision,
            optimizer=OPTIMIZER,
        )
        config = PretrainConfig(
            paths=Paths(raw_text="-"), model=model, training=training
        )
        softmax = SoftmaxConfig(n_words=setting.n_words)
        if setting.n_samples:
            softmax = replace(softmax, type="sampled", n_samples=setting.n_samples)
        torch.manual_seed(0)
        bilm = BiLM(
            replace(config.bilm_config(), softmax=softmax),
            vocab=make_vocab(corpus, setting.n_words),
        )
        self.losses: list[float] = []
        self.trainer = make_trainer(config, bilm, corpus, workdir, self.losses)
        self.trainer.epochs = make_epochs(setting, corpus, one_window)

    def step(self) -> None:
        self.trainer.step()

    def read(self, n_steps: int) -> list[list[str]]:
        """Return the words of each of the next windows: first those of the forward
        direction, then those of the backward direction."""
        words = ["\0", *self.trainer.corpus.words]  # a boundary has one character, too
        at = self.trainer.progress
        texts = []
        for number in range(at.window, at.window + n_steps):
            epoch, number = divmod(number, self.trainer.epochs.n_windows)
            inputs = self.trainer.epochs.window(at.epoch + epoch, number).inputs
            texts.append([words[k] for k in inputs.flatten().tolist()])
        return texts


class Plain:
    """The training loop of the plain biLM.

    one_window (bool): Read the windows of OneWindow instead of Epochs. Then the
        character CNN runs only once for both directions.
    """

    def __init__(self, setting: Setting, corpus: Corpus, one_window: bool) -> None:
        options, training = SIZES[setting.size], TrainingConfig()
        torch.manual_seed(0)
        model = PlainBiLM(
            options,
            n_words=setting.n_words,
            n_samples=setting.n_samples,
            dropout=training.dropout,
        )
        vocab = make_vocab(corpus, setting.n_words)
        outputs, boundaries, _ = softmax_numbers(corpus.words, vocab)
        longest = options["char_cnn"]["max_characters_per_token"]
        self.training = PlainTraining(
            model,
            character_ids(corpus.words, longest),
            outputs,
            boundaries,
            learn_rate=OPTIMIZER.learn_rate,
            initial_accumulator=OPTIMIZER.initial_accumulator,
            clip_norm=training.clip_norm,
        )
        self.epochs = make_epochs(setting, corpus, one_window)
        self.one_window = one_window
        self.at = 0
        self.losses: list[float] = []

    def step(self) -> None:
        inputs, targets = self.epochs.window(*divmod(self.at, self.epochs.n_windows))
        if self.one_window:
            inputs = inputs[:1]
        self.losses.append(self.training.step(inputs, targets))
        self.at += 1


class Apart:
    """The plain loop in a separate process. In the same process it would be faster than
    usual, because our loop changes how the C library keeps freed memory."""

    def __init__(self, setting: Setting, corpus: Corpus, one_window: bool) -> None:
        spawn = get_context("spawn")
        self.connection, other = spawn.Pipe()
        self.losses: list[float] = []
        self.process = spawn.Process(
            target=_serve, args=(other, setting, corpus.folder, one_window), daemon=True
        )
        self.process.start()
        other.close()

    def run(self, times: int) -> float:
        """Make a number of updates and return the seconds that they took."""
        self.connection.send(times)
        seconds, self.losses = self.connection.recv()
        return seconds

    def stop(self) -> None:
        self.connection.send(0)
        self.process.join()


def _serve(
    connection: Connection, setting: Setting, folder: Path, one_window: bool
) -> None:
    # torch warns that it has no faster kernel for these LSTMs; we cannot change that.
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with")
    plain = Plain(setting, Corpus(folder), one_window)
    while times := connection.recv():
        connection.send((timed(plain.step, times), plain.losses))


def make_vocab(corpus: Corpus, n_words: int) -> list[str]:
    """Return n_words words of the text, or invented ones where the text has too few."""
    words = choose_words(corpus, VocabConfig(max_words=n_words, min_count=1))
    return words + [f"\0{number}" for number in range(n_words - len(words))]


def make_trainer(
    config: PretrainConfig,
    bilm: BiLM,
    corpus: Corpus,
    workdir: Path,
    losses: list[float],
) -> Trainer:
    return Trainer(
        config,
        bilm,
        corpus,
        workdir,
        Ranks(torch.device("cpu")),
        on_step=lambda report: losses.append((report.forward + report.backward) / 2),
    )


def timed(work: Callable[[], Any], times: int = 1) -> float:
    time.sleep(SETTLE)
    start = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - start
