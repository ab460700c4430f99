"""Any logger of spaCy (console, Weights & Biases, ...) for a pretraining."""

import sys
from collections.abc import Callable
from typing import Any

import spacy
from spacy import registry

from .perplexity import Perplexity
from .pretrain_config import PretrainConfig
from .trainer import Progress, StepReport


def find_logger(config: PretrainConfig) -> Callable[..., Any]:
    """RETURNS (Callable[..., Any]): What the config's [logger] section names, or one
    sentence if there is none."""
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
    """Calls the logger that the config's [logger] section names as `spacy train` would:
    with a pipeline of `elmo` alone, its loss, and perplexities as scores. The logger
    takes higher scores for better ones, so that its "score" is -perplexity."""

    def __init__(self, config: PretrainConfig) -> None:
        nlp = spacy.blank("xx")
        nlp.add_pipe("elmo")
        # spaCy's console would print scores named here in percent.
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
        score = -result.mean  # the higher, the better
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
