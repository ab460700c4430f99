"""What commands that read a text with a biLM begin with."""

from pathlib import Path
from typing import TYPE_CHECKING

from typer import Option
from wasabi import msg

if TYPE_CHECKING:
    from ..bilm import BiLM
    from ..text.tokenizers import Tokenization


TOKENIZED = Option(
    False, "--tokenized", help="A sentence a line, words parted by spaces"
)
LANG = Option(
    None, "--lang", help="Whose tokenizer; by default, what the biLM was trained on"
)
TOKENIZER = Option(
    None, "--tokenizer", help="A registered tokenizer, such as spacy.Tokenizer.v1"
)
GPU_ID = Option(-1, "--gpu-id", "-g", help="A GPU; -1 for the CPU")


def load_on(gpu_id: int, source: Path) -> "BiLM":
    """RETURNS (BiLM): On a GPU, or for -1 on the CPU."""
    from ..bilm.formats.sources import load_bilm

    return load_bilm(source, device=device_of(gpu_id))


def device_of(gpu_id: int) -> str:
    """RETURNS (str): What torch calls it, or one sentence if it is not there."""
    import torch

    if gpu_id < 0:
        return "cpu"
    if not torch.cuda.is_available():
        raise ValueError("--gpu-id was given and torch finds no GPU; leave it out")
    n_gpus = torch.cuda.device_count()
    if gpu_id >= n_gpus:
        raise ValueError(
            f"GPU {gpu_id} was asked for and torch finds {n_gpus}; expected a number "
            "below that, and under torchrun no more processes than GPUs"
        )
    return f"cuda:{gpu_id}"


def tokenization_for(
    bilm: "BiLM", lang: str | None, tokenizer: str | None, tokenized: bool
) -> "Tokenization":
    """Return the given tokenization, or that of the text the biLM was trained on."""
    from ..text.tokenizers import Tokenization

    known = bilm.config.training
    same = lang in (None, known.get("lang"))
    tokenization = Tokenization(
        lang or known.get("lang") or "xx",
        tokenizer or (known.get("tokenizer") if same else None),
        tokenized,
    )
    return tokenization.or_rules(msg.info)
