"""Compute fingerprints of biLMs."""

import json
from hashlib import blake2b

import numpy as np

from .bilm_base import BiLMBase


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
