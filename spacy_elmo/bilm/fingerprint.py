"""Compute fingerprints of biLMs."""

import json
from hashlib import blake2b

from .model import BiLM


def fingerprint(bilm: BiLM) -> str:
    """Compute the fingerprint of a model. Models with equal configs, lexicons and
    weights have equal fingerprints, on any device and in any process.

    RETURNS (str): 32 hexadecimal digits.
    """
    digest = blake2b(json.dumps(bilm.config.to_dict(), sort_keys=True).encode())
    digest.update(json.dumps(vars(bilm.lexicon), sort_keys=True).encode())
    for name, weight in bilm.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.cpu().contiguous().numpy().data)
    return digest.hexdigest()[:32]
