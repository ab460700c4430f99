"""Turn the data of a model into the torch module and back. The weights are shared, not
copied."""

import torch

from .data import BiLMData
from .model import BiLM


def make_bilm(data: BiLMData) -> BiLM:
    """Make the torch module, in evaluation mode."""
    bilm = BiLM(data.config, lexicon=data.lexicon, vocab=data.vocab, initialize=False)
    tensors = {name: torch.from_numpy(array) for name, array in data.arrays.items()}
    bilm.load_state_dict(tensors, assign=True)
    bilm.stored = data.stored
    return bilm.eval()


def get_data(bilm: BiLM) -> BiLMData:
    """Return the data of a torch module. Weights on a GPU are copied to the host."""
    arrays = {
        name: tensor.detach().float().cpu().numpy()
        for name, tensor in bilm.state_dict().items()
    }
    return BiLMData(bilm.config, arrays, bilm.lexicon, bilm.vocab, bilm.stored)


def check_device(device: str) -> None:
    """Raise ValueError if torch cannot use a device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).split("\n")[0].split(". ")[0]
        raise ValueError(
            f"device is {device!r}, which torch cannot use here ({reason}); expected "
            "'cpu', or 'cuda' on a machine with an NVIDIA GPU and a torch built for it"
        ) from None
