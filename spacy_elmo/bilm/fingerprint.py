"""Compute fingerprints of biLMs."""

import json
from hashlib import blake2b

import numpy as np

from .bilm_base import BiLMBase

N_VALUES = 256  # about how many values of each weight `identify` uses


def fingerprint(bilm: BiLMBase) -> str:
    """Compute the fingerprint of a model. Models with equal configs, lexicons and
    weights have equal fingerprints, on any device and in any process.

    RETURNS (str): 32 hexadecimal digits.
    """
    data = bilm.data
    digest = blake2b(json.dumps(data.config.to_dict(), sort_keys=True).encode())
    digest.update(json.dumps(vars(data.lexicon), sort_keys=True).encode())
    for name, array in data.arrays.items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def identify(bilm: BiLMBase) -> str:
    """Compute a short name of the weights that give the layers, from some of their
    values, which takes hardly any time. It is the same for all copies of a model, with
    and without its softmax, and changes when the weights are updated.

    RETURNS (str): 12 hexadecimal digits.
    """
    data = bilm.data
    digest = blake2b(json.dumps(vars(data.lexicon), sort_keys=True).encode())
    for name, array in data.arrays.items():
        if not name.startswith("softmax."):
            step = 1 + array.size // N_VALUES
            values = np.ascontiguousarray(array, dtype="<f4").reshape(-1)[::step]
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()[:12]
