"""Train a biLM: the training loop, evaluations, checkpoints and limits."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..bilm import BiLM
from ..bilm.state import State
from ..bilm.training.step import Dropout, train_step
from ..files import write_folder_atomically
from .checkpoint_compatibility import check_fit, describe_run, find_place
from .checkpoints import Checkpoints
from .corpus import Corpus
from .freed_memory import keep_freed_memory
from .gradient_exchange import GradientExchange
from .loss_scale import LossScaler
from .optimizers import clip_by_norm, make_optimizer
from .perplexity import Perplexity, evaluate
from .pretrain_config import PretrainConfig
from .ranks import Ranks
from .schedule import schedule
from .stop_signals import call_on_signals
from .training_progress import Progress, StepReport, count_words_read
from .vocab import softmax_numbers
from .windows import Epochs, WindowEncoder


class Trainer:
    """Trains a biLM on a corpus.

    config (PretrainConfig): The whole config.
    bilm (BiLM): The biLM, which is changed.
    corpus (Corpus): The text to train and to evaluate on.
    output (Path): The folder for models and checkpoints.
    ranks (Ranks): The processes that train together.
    new_softmax (bool): Train only the softmax at first, because it is new and the rest
        of the biLM is not.
    on_step, on_evaluation, on_checkpoint (Callable): Called after each step, evaluation
        and checkpoint.
    """

    def __init__(
        self,
        config: PretrainConfig,
        bilm: BiLM,
        corpus: Corpus,
        output: Path,
        ranks: Ranks,
        *,
        new_softmax: bool = False,
        on_step: Callable[[StepReport], None] = lambda report: None,
        on_evaluation: Callable[[Progress, Perplexity], None] = lambda p, e: None,
        on_checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        assert bilm.vocab is not None
        if bilm.device.type == "cpu":
            keep_freed_memory()
        self.config = training = config.training
        self.corpus_config = config.corpus
        self.bilm = bilm
        self.words_before = count_words_read(bilm.config.training)
        self.corpus = corpus
        self.output = output
        self.ranks = ranks
        self.n_frozen_steps = training.warmup_softmax_steps if new_softmax else 0
        self.on_step = on_step
        self.on_evaluation = on_evaluation
        self.on_checkpoint = on_checkpoint
        outputs, boundaries, self.unknown = softmax_numbers(corpus.words, bilm.vocab)
        self.window_encoder = WindowEncoder(
            bilm,
            corpus.words,
            outputs,
            boundaries,
            forget=not training.carry_state,
            even=bilm.device.type == "cpu",
        )
        mine = training.batch_size
        self.epochs = Epochs(
            corpus.train,
            n_rows=mine * ranks.size,
            n_steps=training.window,
            seed=training.seed,
            rows=slice(ranks.rank * mine, (ranks.rank + 1) * mine),
        )
        self.progress = Progress()
        self.state = State.zeros(bilm.config.lstm, mine, bilm.weight)
        self.dropout = Dropout(
            training.dropout, training.seed * 1000 + ranks.rank, bilm.device
        )
        self.weights = {n: p for n, p in bilm.named_parameters() if p.requires_grad}
        data = {name: weight.data for name, weight in self.weights.items()}
        self.optimizer = make_optimizer(data, training.optimizer)
        self.scaler = LossScaler(training.precision)
        # Whether this process got a signal to stop, and whether all processes know.
        self.got_signal = self.stopping = False
        ranks.share(list(self.weights.values()))

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.output / "checkpoints")

    def run(self) -> None:
        """Train until a limit is reached or a signal asks to stop. Either way, write a
        checkpoint at the end."""
        restore_signals = call_on_signals(self._note_signal)
        saved_at = self.progress.seconds
        # A run that resumes may not have been evaluated yet.
        evaluated = self.progress.step if math.isfinite(self.progress.best) else -1
        saved = self.progress.step or -1  # a run resumes from a step that is saved
        try:
            while not self._done():
                self.step()
                due = self.progress.step % self.config.eval_frequency == 0
                if due and len(self.corpus.dev.tokens):
                    self._on_the_clock(self.evaluate)
                    evaluated = self.progress.step
                minutes = (self.progress.seconds - saved_at) / 60
                if due or minutes >= self.config.checkpoint_minutes:
                    self._on_the_clock(self.save)
                    saved, saved_at = self.progress.step, self.progress.seconds
            if not self.stopping and evaluated != self.progress.step:
                if len(self.corpus.dev.tokens):
                    self._on_the_clock(self.evaluate)
                    saved = -1  # the checkpoint lacks this evaluation
            if saved != self.progress.step:
                self.save()
            self.save_model("model-last")
            if not len(self.corpus.dev.tokens):
                # Without evaluations, the last model counts as the best.
                self.save_model("model-best")
        finally:
            restore_signals()

    def _note_signal(self) -> None:
        self.got_signal = True

    def _on_the_clock(self, work: Callable[[], Any]) -> None:
        """Do some work, and count its time as training time, which has a limit."""
        start = time.monotonic()
        work()
        self.progress.seconds += self.ranks.of_first(time.monotonic() - start)

    def step(self) -> None:
        """Compute the gradients of some windows and update the weights once."""
        start = time.monotonic()
        config, progress = self.config, self.progress
        scale = config.window if config.sum_over_window else 1
        exchange = GradientExchange(
            self.ranks, config.accumulate, scale / config.accumulate
        )
        losses = torch.zeros(2, device=self.bilm.device)
        frozen = progress.step < self.n_frozen_steps
        for _ in range(config.accumulate):
            numbers = self.epochs.window(progress.epoch, progress.window)
            step = train_step(
                self.bilm,
                self.window_encoder.encode(numbers),
                self.state,
                self.dropout,
                frozen=frozen,
                dtype=getattr(torch, config.precision),
                loss_scale=self.scaler.scale,
                compiled=config.compile,
                on_gradients=exchange.add,
            )
            self.state = State(*(part.float() for part in step.state))
            losses += step.losses
            self.advance()
        self.bilm.weights_changed()
        gradients = exchange.finish()
        norm = clip_by_norm(gradients, config.clip_norm)
        rate = self.learn_rate()
        if self.scaler.accepts(norm):
            for name, gradient in gradients.items():
                if name in self.weights:
                    self.optimizer.step(name, gradient, rate)
        n_words = config.batch_size * config.window * config.accumulate
        n_words *= self.ranks.size
        progress.step += 1
        progress.n_words += n_words
        # All processes need the same time: learning rate and limits can depend on it.
        seconds = self.ranks.of_first(time.monotonic() - start)
        progress.seconds += seconds
        forward, backward = (self.ranks.total(losses).cpu() / n_words).tolist()
        speed = n_words / seconds
        self.on_step(
            StepReport(
                progress, forward, backward, norm, rate, speed, self.share_done()
            )
        )

    def advance(self) -> None:
        """Go to the next window, which may be in the next epoch."""
        self.progress.window += 1
        if self.progress.window >= self.epochs.n_windows:
            self.progress.window = 0
            self.progress.epoch += 1
            # The next epoch does not continue the sentences that the rows ended with.
            self.state = State.zeros(
                self.bilm.config.lstm, self.config.batch_size, self.bilm.weight
            )

    def evaluate(self) -> Perplexity:
        """Compute the perplexity on the text that is held out, and save the model if it
        is the best so far."""
        self._check_weights()
        result = evaluate(
            self.bilm,
            self.corpus.dev,
            self.window_encoder,
            self.unknown,
            ranks=self.ranks,
        )
        progress = self.progress
        if result.mean < progress.best:
            progress.best, progress.since_best = result.mean, 0
            self.save_model("model-best", result)
        else:
            progress.since_best += 1
        self.on_evaluation(progress, result)
        return result

    def share_done(self) -> float:
        """Return how much of the training is done, as a share of the nearest limit.
        Patience does not count, because each better evaluation starts it again."""
        config, progress = self.config, self.progress
        epochs = progress.epoch + progress.window / self.epochs.n_windows
        limits = [
            (progress.step, config.max_steps),
            (epochs, config.max_epochs),
            (progress.n_words, config.max_words),
            (progress.seconds / 60, config.max_minutes),
        ]
        return max((value / limit for value, limit in limits if limit), default=0.0)

    def _done(self) -> bool:
        """Return whether to stop, and find out whether any process got a signal."""
        self.stopping = self.ranks.any(self.got_signal)
        patience = self.config.patience
        out_of_patience = 0 < patience <= self.progress.since_best
        return self.stopping or self.ranks.any(
            out_of_patience or self.share_done() >= 1
        )

    def learn_rate(self) -> float:
        """Return the learning rate of the next step."""
        config = self.config
        share = min(1.0, self.share_done())
        factor = schedule(config.schedule, self.progress.step, share)
        return config.optimizer.learn_rate * factor

    def _check_weights(self) -> None:
        """Raise ValueError if the weights have overflowed. They must not be saved,
        because training could not continue from them."""
        if not all(bool(t.isfinite().all()) for t in self.bilm.state_dict().values()):
            raise ValueError(
                f"the weights are not finite after step {self.progress.step:,}; lower "
                "training.optimizer.learn_rate and resume"
            )

    def save(self) -> None:
        """Write a checkpoint."""
        self._check_weights()
        h = self.ranks.collect(self.state.h, 2)
        c = self.ranks.collect(self.state.c, 2)
        states = [
            torch.get_rng_state(),
            *(g.get_state() for g in self.dropout.generators),
        ]
        random = self.ranks.collect(torch.stack([_pad(s) for s in states])[None], 0)
        if not self.ranks.first:
            return
        tensors: dict[str, Tensor] = {"state.h": h, "state.c": c, "random": random}
        named = {"weights": self.bilm.state_dict(), "optimizer": self.optimizer.state()}
        for kind, group in named.items():
            tensors.update({f"{kind}.{name}": t for name, t in group.items()})
        facts = {
            "progress": asdict(self.progress),
            "n_ranks": self.ranks.size,
            "run": describe_run(self.bilm, self.config),
            "words_before": self.words_before,
            "loss_scale": [self.scaler.scale, self.scaler.n_good],
            "random_sizes": [len(state) for state in states],
            "fingerprint": self.corpus.meta["fingerprint"],
            "vocab": self.bilm.vocab,
        }
        tensors = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
        self.checkpoints.save(self.progress.step, tensors, facts)
        self.on_checkpoint()

    def resume(self, say: Callable[[str], None]) -> bool:
        """Continue from the newest complete checkpoint.

        say (Callable[[str], None]): Called with a sentence about each checkpoint that
            cannot be used, and about what has changed since the last run.
        RETURNS (bool): Whether there is a checkpoint.
        """
        found = self.checkpoints.load(say)
        step = -1 if found is None else found[1]["progress"]["step"]
        if self.ranks.any(step != self.ranks.of_first(step)):
            raise ValueError(
                f"{self.checkpoints.folder}: processes found different checkpoints; "
                "expected an --output on a disk that all of them share"
            )
        if found is None:
            return False
        tensors, facts = found
        if facts["vocab"] != self.bilm.vocab:
            raise ValueError(
                f"{self.checkpoints.folder}: found a checkpoint with another "
                "vocabulary; expected that of this config and text"
            )
        targets = {f"weights.{n}": t for n, t in self.bilm.state_dict().items()}
        optimizer = self.optimizer.state()
        targets.update({f"optimizer.{name}": t for name, t in optimizer.items()})
        run = describe_run(self.bilm, self.config)
        check_fit(self.checkpoints.folder, facts, run, tensors, targets)
        with torch.no_grad():
            for name, tensor in targets.items():
                tensor.copy_(tensors[name])
        self.bilm.weights_changed()
        self.scaler.resume(*facts["loss_scale"])
        # The biLM to start from may have been replaced by this run since.
        self.words_before = facts.get("words_before", self.words_before)
        self.progress = Progress(**facts["progress"])
        window, changes = find_place(facts, tensors, self.config, self.ranks.size)
        self.progress.window = min(window, self.epochs.n_windows - 1)
        if facts["fingerprint"] != self.corpus.meta["fingerprint"]:
            say("The text has changed: training continues at the start of an epoch")
            self.progress.window = 0
            # Perplexities on different texts cannot be compared.
            self.progress.best, self.progress.since_best = math.inf, 0
        elif changes:
            say(
                f"The checkpoint was written {', '.join(changes)}: LSTM states start "
                "from zero"
            )
        else:
            self._resume_state(tensors, facts["random_sizes"])
        return True

    def _resume_state(self, tensors: dict[str, Tensor], sizes: Any) -> None:
        """Restore the LSTM states and random generators of this process.

        sizes (list[int]): The size of the state of each generator, without padding.
        """
        mine = self.config.batch_size
        rows = slice(self.ranks.rank * mine, (self.ranks.rank + 1) * mine)
        device = self.bilm.device
        self.state = State(
            tensors["state.h"][:, :, rows].to(device),
            tensors["state.c"][:, :, rows].to(device),
        )
        random = tensors["random"][self.ranks.rank]
        main, *dropout = (state[:size].clone() for state, size in zip(random, sizes))
        torch.set_rng_state(main)
        for generator, state in zip(self.dropout.generators, dropout):
            generator.set_state(state)

    def save_model(self, name: str, result: Perplexity | None = None) -> None:
        """Save the biLM.

        name (str): The name of the folder in the output folder.
        result (Perplexity | None): Its perplexity, if it is known.
        """
        if not self.ranks.first:
            return
        facts: dict[str, Any] = {
            **self.progress.to_facts(self.words_before),
            "corpus": {k: self.corpus.meta[k] for k in ("train", "dev", "n_distinct")},
            "lang": self.corpus_config.lang,
            "tokenizer": self.corpus_config.tokenizer,
        }
        if result is not None:
            facts["perplexity"] = result.as_dict()
        self.bilm.config = replace(self.bilm.config, training=facts)
        write_folder_atomically(self.output / name, self.bilm.save)


def _pad(state: Tensor, size: int = 8192) -> Tensor:
    """Pad the state of a random generator, so that different states can be stacked."""
    return torch.cat([state.cpu(), torch.zeros(size - len(state), dtype=torch.uint8)])
