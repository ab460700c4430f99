"""Use a biLM as a language model: probabilities of words in their contexts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .engines.packing import plan
from .lexicon import SPECIAL_WORDS

if TYPE_CHECKING:
    from .model import BiLM

BEGIN, END, UNKNOWN = SPECIAL_WORDS
BATCH_TOKENS = 2048


def get_head(bilm: "BiLM") -> tuple[Any, list[str]]:
    """Return the softmax and its words. Raise ValueError if the model has none."""
    if bilm.softmax is None or bilm.vocab is None:
        raise ValueError(
            "this biLM has no softmax with a vocabulary, so it gives no probabilities; "
            "expected one as `spacy elmo pretrain` writes it"
        )
    return bilm.softmax, bilm.vocab


@torch.no_grad()
def predict_word(
    bilm: "BiLM", sentence: Sequence[str], position: int, n: int
) -> list[tuple[str, float]]:
    """Predict the word at a position; see BiLM.predict."""
    head, vocab = get_head(bilm)
    if not 0 <= position < len(sentence):
        raise ValueError(
            f"position is {position}; expected 0 to {len(sentence) - 1}, a word of the "
            "sentence"
        )
    if n < 0:
        raise ValueError(f"n is {n}; expected a number of words")
    top = bilm(bilm.prepare([sentence])).layers[-1, 0]  # boundaries included
    width = bilm.config.lstm.projection_dim
    # Neither direction may have read the word itself: take the forward output at the
    # word before it and the backward output at the word after it.
    sides = torch.stack([top[position, :width], top[position + 2, width:]])
    scores = head.all_log_probs(sides).sum(0)
    for word in (BEGIN, END, UNKNOWN):
        scores[vocab.index(word)] = -torch.inf
    best = torch.softmax(scores, 0).topk(min(n, len(vocab) - 3))
    found = zip(best.indices.tolist(), best.values.tolist())
    return [(vocab[number], share) for number, share in found]


@torch.no_grad()
def surprisal(bilm: "BiLM", sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Compute the surprisal of each word; see BiLM.surprisal."""
    head, vocab = get_head(bilm)
    numbers = {word: number for number, word in enumerate(vocab)}
    # A word of the text that is spelled like a boundary counts as an unknown word.
    numbers[BEGIN] = numbers[END] = numbers[UNKNOWN]
    out = [np.zeros((len(words), 2), dtype=np.float32) for words in sentences]
    width = bilm.config.lstm.projection_dim
    for packing in plan([len(words) for words in sentences], BATCH_TOKENS):
        chosen = [sentences[row] for row in packing.rows]
        top = bilm(bilm.prepare(chosen)).layers[-1]  # (n_rows, n_steps, 2 * proj)
        hidden: list[Tensor] = []
        targets: list[int] = []
        for words, layer in zip(chosen, top):
            n = len(words)
            own = [numbers.get(word, numbers[UNKNOWN]) for word in words]
            hidden += [layer[:n, :width], layer[2 : n + 2, width:]]
            targets += own + own
        wanted = torch.tensor(targets, device=bilm.device)
        logs = head.log_probs(torch.cat(hidden), wanted)
        bits = (-logs / np.log(2)).float().cpu().numpy()
        at = 0
        for row, words in zip(packing.rows, chosen):
            n = len(words)
            out[row][:, 0], out[row][:, 1] = (
                bits[at : at + n],
                bits[at + n : at + 2 * n],
            )
            at += 2 * n
    return out
