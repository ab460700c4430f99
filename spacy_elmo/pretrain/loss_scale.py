"""Scale the loss so that gradients fit into float16."""

import math


class LossScaler:
    """Finds the largest scale of the loss at which gradients do not overflow in
    float16. If they overflow, it halves the scale and the step is skipped. After
    PATIENCE steps without overflow, it doubles the scale. It never goes below LOWEST:
    if gradients overflow even then, the reason is not float16.

    precision (str): The precision of training. Unless it is "float16", the scale is 1.
    """

    PATIENCE = 2000  # steps
    LOWEST = 2.0**-24

    def __init__(self, precision: str) -> None:
        self.active = precision == "float16"
        self.scale = 2.0**14 if self.active else 1.0
        self.n_good = 0

    def accepts(self, norm: float) -> bool:
        """Return whether to use the gradients of a step, and adjust the scale.

        norm (float): The norm of all gradients. If it is not finite although there is
            no scale to lower, a ValueError is raised.
        """
        if not math.isfinite(norm):
            if not self.active or self.scale <= self.LOWEST:
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

    def resume(self, scale: float, n_good: int) -> None:
        """Continue with what a checkpoint has saved, unless it was saved in a precision
        that needs no scale."""
        if self.active and (scale, n_good) != (1.0, 0):
            self.scale, self.n_good = scale, n_good
