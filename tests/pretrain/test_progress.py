"""Show the progress of a training on the console."""

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from helpers.pretraining import write_config, write_text

from spacy_elmo.pretrain import progress as progress_module
from spacy_elmo.pretrain.perplexity import Perplexity
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.pretrain.progress import Console, JsonLog
from spacy_elmo.pretrain.training_progress import Progress, StepReport

REPORT = StepReport(
    Progress(step=1234, epoch=1, n_words=2_500_000, seconds=600.0),
    forward=2.0,
    backward=3.0,
    norm=1.0,
    learn_rate=0.1,
    words_per_second=4321.0,
    share_done=0.25,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Replace stderr by a terminal, and the clock by one that advances a second each
    time it is read."""
    terminal = Terminal()
    monkeypatch.setattr(progress_module, "sys", SimpleNamespace(stderr=terminal))
    use_clock(monkeypatch, range(1, 1000))
    return terminal


def use_clock(monkeypatch, seconds):
    clock = SimpleNamespace(monotonic=iter(seconds).__next__)
    monkeypatch.setattr(progress_module, "time", clock)


def line(terminal):
    """Return the last text of the line that changes."""
    return terminal.getvalue().rsplit("\r\033[K", 1)[-1]


def test_a_damaged_log_is_continued(tmp_path):
    path = tmp_path / "log.jsonl"
    good, late = b'{"type": "step", "step": 2}\n', b'{"type": "step", "step": 4}\n'
    damaged = [b"[1]", b"5", b'{"step": null}', b'{"step": "2"}', b"{}", b'{"step": 1']
    damaged += [b'{"type": "\xff"}', b"[" * 10**5, b"", b"\0\0\0"]
    path.write_bytes(good + b"\n".join(damaged) + b"\n" + late + good)
    JsonLog(path).begin(3, None)
    assert path.read_bytes() == good + good


def test_live_line(terminal):
    Console(print).step(REPORT)
    assert line(terminal) == (
        "step 1,234 | 4,321 words/s | loss 2.500 | perplexity 7.4/20.1 | "
        "25.0% done, 0:30:00 left"
    )
    assert "\n" not in terminal.getvalue()


@pytest.mark.parametrize(
    "share, left", [(0.1, "1:30:00"), (1.0, "0:00:00"), (1.02, "0:00:00")]
)
def test_time_left(terminal, share, left):
    Console(print).step(replace(REPORT, share_done=share))
    assert line(terminal).endswith(f"{min(1.0, share):.1%} done, {left} left")


def test_nobody_knows_how_long_patience_lasts(terminal):
    Console(print).step(replace(REPORT, share_done=0.0))
    assert line(terminal).endswith("perplexity 7.4/20.1")


def test_losses_are_smoothed(terminal):
    console = Console(print)
    for forward in (2.0, 3.0):
        console.step(replace(REPORT, forward=forward, backward=forward))
    assert "loss 2.020" in line(terminal)


def test_line_is_written_twice_a_second_at_most(terminal, monkeypatch):
    use_clock(monkeypatch, [7.0, 7.1, 7.2, 7.5, 7.6, 7.7])
    console = Console(print)
    for _ in range(6):
        console.step(REPORT)
    assert terminal.getvalue().count("step 1,234") == 2


def test_rows_of_evaluations_clear_the_line(terminal):
    said = []
    console = Console(said.append)
    console.step(REPORT)
    for since_best in (0, 1):
        progress = replace(REPORT.progress, since_best=since_best)
        console.evaluation(progress, Perplexity(10.0, 20.0, 5, 1))
        assert line(terminal) == ""
    title, header, first, second = said
    assert title == "Perplexity on the held-out text (* is the best so far):"
    assert header.split()[:4] == ["step", "epoch", "words", "minutes"]
    cells = ["1,234", "1", "2.50M", "10.0", "10.0", "20.0", "15.0"]
    assert first.split() == [*cells, "*"] and second.split() == cells


def test_no_live_line_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(progress_module, "sys", SimpleNamespace(stderr=stream))
    console = Console(print)
    console.step(REPORT)
    console.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize("limit", ["max_steps", "patience"])
def test_line_of_a_run(terminal, tmp_path, limit):
    path = write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
    overrides = {"training.max_steps": 0, f"training.{limit}": 3}
    overrides["training.eval_frequency"] = 1
    if limit == "patience":
        overrides["training.optimizer.learn_rate"] = 1e-30
    pretrain(load_config(path, overrides), tmp_path / "run", say=lambda said: None)
    written = terminal.getvalue()
    steps = re.findall(r"step (\d+) \|", written)
    assert steps == (["1", "2", "3"] if limit == "max_steps" else ["1", "2", "3", "4"])
    assert ("left" in written) == (limit == "max_steps")
    assert line(terminal) == ""  # the line was removed at the end
