"""Use a logger of spaCy (console, Weights & Biases, ...) for a pretraining."""

import sys
from collections.abc import Callable
from typing import Any

import spacy
from spacy import registry

from .perplexity import Perplexity
from .pretrain_config import PretrainConfig
from .training_progress import Progress, StepReport


def find_logger(config: PretrainConfig) -> Callable[..., Any]:
    """Return the logger that the [logger] section of the config names. If there is no
    such logger, a ValueError says so in one sentence."""
    try:
        found = registry.resolve({"logger": config.logger})["logger"]
    except (ValueError, ImportError) as error:
        reason = " ".join(str(error).strip().split("\n\n")[0].split())
        raise ValueError(f"logger: {reason}") from None
    if not callable(found):
        raise ValueError(
            f"logger is {config.logger!r}; expected @loggers with a name, such as "
            "spacy.ConsoleLogger.v1"
        )
    return found


class SpacyLogger:
    """Calls a logger of spaCy as `spacy train` does: with a pipeline that has only
    `elmo`, its loss, and perplexities as scores. For spaCy, a higher score is
    better, so "score" is the negative perplexity.

    config (PretrainConfig): Its [logger] section names the logger.
    """

    def __init__(self, config: PretrainConfig) -> None:
        nlp = spacy.blank("xx")
        nlp.add_pipe("elmo")
        # spaCy's console logger would multiply scores named here by 100, as percents.
        nlp.config["training"]["score_weights"] = {}
        nlp.config["pretraining"] = config.to_dict()
        made: tuple[Callable[..., None], Callable[[], None]] = find_logger(config)(
            nlp, sys.stdout, sys.stderr
        )
        self._log, self._finalize = made
        self._loss = 0.0
        self._checkpoints: list[tuple[float, int]] = []

    def step(self, report: StepReport) -> None:
        self._loss += report.forward + report.backward
        self._log(None)

    def evaluation(self, progress: Progress, result: Perplexity) -> None:
        score = -result.mean
        self._checkpoints.append((score, progress.step))
        info: dict[str, Any] = {
            "epoch": progress.epoch,
            "step": progress.step,
            "score": score,
            "other_scores": {
                "perplexity_forward": result.forward,
                "perplexity_backward": result.backward,
                "perplexity": result.mean,
            },
            "losses": {"elmo": self._loss},
            "checkpoints": self._checkpoints,
            "seconds": int(progress.seconds),
            "words": progress.n_words,
        }
        self._loss = 0.0
        self._log(info)

    def close(self) -> None:
        self._finalize()
