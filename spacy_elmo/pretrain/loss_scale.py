"""Gradients large enough for float16."""

import math


class LossScaler:
    """Finds how much gradients must be enlarged for float16 to hold them: halves the
    scale, and leaves a step out, when they overflow, and tries more after a while."""

    PATIENCE = 2000

    def __init__(self, precision: str) -> None:
        self.active = precision == "float16"
        self.scale = 2.0**14 if self.active else 1.0
        self.n_good = 0

    def accepts(self, norm: float) -> bool:
        """norm (float): Of all gradients. RETURNS (bool): Whether to use them."""
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
