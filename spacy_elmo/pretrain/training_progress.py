"""The progress of a training, and the results of a step."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass
class Progress:
    """How far training has come.

    step (int): The number of updates of the weights so far.
    epoch (int): The epoch of the next window.
    window (int): The number of the next window in its epoch.
    n_words (int): The number of words trained on so far.
    seconds (float): Time spent on training, evaluations and checkpoints.
    best (float): The best perplexity so far.
    since_best (int): The number of evaluations since the best one.
    """

    step: int = 0
    epoch: int = 0
    window: int = 0
    n_words: int = 0
    seconds: float = 0.0
    best: float = math.inf
    since_best: int = 0

    def to_facts(self, words_before: int) -> dict[str, Any]:
        """Return what a biLM says about its training.

        words_before (int): The words of earlier rounds of training.
        """
        return {
            "steps": self.step,
            "words": self.n_words,
            "total_words": words_before + self.n_words,
            "seconds": round(self.seconds, 1),
        }


@dataclass
class StepReport:
    """The results of a step.

    progress (Progress): The progress after the step.
    forward, backward (float): The loss of each direction: the mean of -ln p(word).
    norm (float): The norm of all gradients before clipping.
    learn_rate (float): The learning rate.
    words_per_second (float): The speed.
    share_done (float): How much of the training is done, as a share of the nearest
        limit.
    """

    progress: Progress
    forward: float
    backward: float
    norm: float
    learn_rate: float
    words_per_second: float
    share_done: float


def count_words_read(training: dict[str, Any]) -> int:
    """Return how many words a biLM has been trained on in all rounds of its training.

    training (dict[str, Any]): What the biLM says about its training.
    """
    found = training.get("total_words", training.get("words"))
    return found if isinstance(found, int) else 0
