"""Scale the loss so that gradients fit into float16."""

import math


class LossScaler:
    """Finds the largest scale of the loss at which gradients do not overflow in
    float16: halves it and skips the step if they do, and doubles it after PATIENCE
    good steps.

    precision (str): Only "float16" needs a scale.
    """

    PATIENCE = 2000  # steps

    def __init__(self, precision: str) -> None:
        self.active = precision == "float16"
        self.scale = 2.0**14 if self.active else 1.0
        self.n_good = 0

    def accepts(self, norm: float) -> bool:
        """Return whether to use the gradients of a step, and adjust the scale.

        norm (float): The norm of all gradients.
        """
        if not math.isfinite(norm):
            if not self.active:
                raise ValueError(
                    "the gradients are not finite; lower training.optimizer.learn_rate "
                    "and resume"
                )
            self.scale, self.n_good = self.scale / 2, 0
            return False
        self.n_good += self.active
        if self.n_good == self.PATIENCE:
            self.scale, self.n_good = self.scale * 2, 0
        return True
