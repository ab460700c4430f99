"""A name for weights."""

import json
from hashlib import blake2b

from .model import BiLM


def fingerprint(bilm: BiLM) -> str:
    """RETURNS (str): Differs for different weights and symbols; the same ones have the
    same wherever they are."""
    digest = blake2b(json.dumps(bilm.config.to_dict(), sort_keys=True).encode())
    digest.update(json.dumps(vars(bilm.lexicon), sort_keys=True).encode())
    for name, weight in bilm.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.cpu().contiguous().numpy().data)
    return digest.hexdigest()[:32]
