"""Show the progress of a training on the console, and log it to a file."""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ..files import explain_errors, sync, write_atomically
from ..results import ConfigRow, EvaluationRow, Form, StepRow, as_json
from .perplexity import Perplexity
from .pretrain_config import PretrainConfig
from .training_progress import Progress, StepReport

LOG_EVERY = 20  # steps


class JsonLog:
    """Logs to a file with one JSON object per line. `results` defines their keys.

    path (Path | None): The file; None to write nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def begin(self, step: int, config: PretrainConfig) -> None:
        """Start a log, or continue the log of an earlier run. The rows after its
        last checkpoint are removed, since these steps will be logged again.

        step (int): The step of the checkpoint; 0 to start a log.
        config (PretrainConfig): The config, which is the first row of a new log.
        """
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        old = self.path.read_bytes() if step and self.path.exists() else b""
        kept = [line + b"\n" for line in old.splitlines() if _is_until(step, line)]
        write_atomically(self.path, lambda part: part.write_bytes(b"".join(kept)))
        if not step:
            row = ConfigRow(type="config", step=0, config=config.to_dict())
            self._write(row)

    def step(self, report: StepReport) -> None:
        progress = report.progress
        if progress.step % LOG_EVERY == 0 or progress.step == 1:
            self._write(
                StepRow(
                    type="step",
                    step=progress.step,
                    epoch=progress.epoch,
                    words=progress.n_words,
                    seconds=round(progress.seconds, 2),
                    forward_loss=report.forward,
                    backward_loss=report.backward,
                    gradient_norm=report.norm,
                    learn_rate=report.learn_rate,
                    words_per_second=round(report.words_per_second, 1),
                )
            )

    def evaluation(self, progress: Progress, result: Perplexity) -> None:
        self._write(
            EvaluationRow(
                type="evaluation",
                step=progress.step,
                epoch=progress.epoch,
                words=progress.n_words,
                seconds=round(progress.seconds, 2),
                **result.as_dict(),
            )
        )

    def save(self) -> None:
        """Wait until the log is on the disk."""
        if self.path is not None and self.path.exists():
            with explain_errors(self.path):
                sync(self.path)

    def _write(self, row: Form) -> None:
        if self.path is not None:
            with (
                explain_errors(self.path),
                self.path.open("a", encoding="utf8") as file,
            ):
                file.write(json.dumps(as_json(row)) + "\n")


def _is_until(step: int, line: bytes) -> bool:
    """Return whether a line of a log is a row of at most the given step. A run that was
    killed may leave half a row."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    found = row.get("step") if isinstance(row, dict) else None
    return type(found) is int and found <= step


class Console:
    """Shows a line that changes while training, and a table of the evaluations.

    say (Callable[[str], None]): Prints a line.
    """

    COLUMNS = (
        "step",
        "epoch",
        "words",
        "minutes",
        "forward",
        "backward",
        "mean",
        "",
    )

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.live = sys.stderr.isatty()
        self.header = False
        self.shown = 0.0
        self.loss = [math.nan, math.nan]
        self.speed = math.nan

    def step(self, report: StepReport) -> None:
        """Update the line that changes, at most twice a second. Its loss and speed are
        means of about the last 50 steps."""
        new = [report.forward, report.backward]
        self.loss = [_smooth(a, b) for a, b in zip(self.loss, new)]
        self.speed = _smooth(self.speed, report.words_per_second)
        now = time.monotonic()
        if self.live and now - self.shown > 0.5:
            self.shown = now
            progress = report.progress
            forward, backward = (math.exp(min(50.0, loss)) for loss in self.loss)
            line = (
                f"step {progress.step:,} | {self.speed:,.0f} words/s | loss "
                f"{sum(self.loss) / 2:.3f} | perplexity {forward:,.1f}/{backward:,.1f}"
            )
            share = min(1.0, report.share_done)
            if share > 0:  # with patience alone, the end is unknown
                left = progress.seconds * (1 / share - 1)
                line += f" | {share:.1%} done, {_clock(left)} left"
            sys.stderr.write("\r\033[K" + line)
            sys.stderr.flush()

    def evaluation(self, progress: Progress, result: Perplexity) -> None:
        """Print a row of the table."""
        self.close()
        if not self.header:
            self.header = True
            self.say("Perplexity on the held-out text (* is the best so far):")
            self.say(" ".join(f"{name:>9}" for name in self.COLUMNS))
        best = "*" if progress.since_best == 0 else ""
        cells = (
            f"{progress.step:,}",
            f"{progress.epoch}",
            f"{progress.n_words / 1e6:.2f}M",
            f"{progress.seconds / 60:.1f}",
            f"{result.forward:.1f}",
            f"{result.backward:.1f}",
            f"{result.mean:.1f}",
            best,
        )
        self.say(" ".join(f"{cell:>9}" for cell in cells))

    def close(self) -> None:
        """Remove the line that changes."""
        if self.live:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _smooth(old: float, new: float) -> float:
    return new if math.isnan(old) else old + 0.02 * (new - old)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
