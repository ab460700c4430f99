"""What `elmo` uses when it is given no biLM."""

import warnings

import torch

from .bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig


def default_bilm() -> BiLM:
    """RETURNS (BiLM): A tiny model, the same each time, with a warning that it has
    learned nothing."""
    warnings.warn(
        "elmo: no biLM was given, so a tiny untrained one is used, whose vectors mean "
        "nothing; name one with the setting 'bilm'",
        UserWarning,
        stacklevel=2,
    )
    config = BiLMConfig(
        encoder=BytesConfig(char_dim=8, filters=[[1, 16], [2, 16], [3, 32]]),
        lstm=LSTMConfig(dim=128, projection_dim=32),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BiLM(config).eval()
