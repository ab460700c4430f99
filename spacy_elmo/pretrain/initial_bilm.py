"""Make the biLM that a pretraining starts from: a new one, or a trained one."""

from dataclasses import replace
from typing import cast

import torch

from ..bilm import BiLM, SoftmaxConfig, load_bilm
from ..bilm.softmax import FullSoftmax, make_softmax
from ..bilm.training.grow import grow
from .corpus import Corpus
from .pretrain_config import PretrainConfig, VocabConfig
from .vocab import choose_words, load_given_words

FULL_UP_TO = 30_000  # words; for fewer, sampling saves no time


def make_softmax_config(n_words: int, config: VocabConfig) -> SoftmaxConfig:
    """Choose the kind of softmax for a vocabulary of n_words."""
    kind = config.softmax
    if kind == "auto":
        kind = "full" if n_words <= FULL_UP_TO else "sampled"
    if kind == "sampled" and config.n_samples >= n_words:
        kind = "full"  # a sample would contain all words
    return SoftmaxConfig(n_words=n_words, type=kind, n_samples=config.n_samples)


def make_bilm(config: PretrainConfig, corpus: Corpus) -> tuple[BiLM, bool]:
    """Make a biLM to be trained: a new one, or the one of paths.initialize_from with a
    vocabulary for this corpus.

    RETURNS (tuple[BiLM, bool]): The biLM, and whether its softmax is new while the
        rest of the biLM has been trained.
    """
    given = load_given_words(config)
    if config.paths.initialize_from is None:
        words = given or choose_words(corpus, config.vocab)
        sizes = replace(
            config.bilm_config(), softmax=make_softmax_config(len(words), config.vocab)
        )
        return BiLM(sizes, vocab=words), False
    bilm = load_initial_bilm(config, config.paths.initialize_from)
    known = bilm.vocab if bilm.softmax is not None else None
    if known is None:
        words = given or choose_words(corpus, config.vocab)
        _set_softmax(bilm, words, config.vocab)
        return bilm, True
    if config.vocab.extend or given is not None:
        wanted = given or choose_words(corpus, config.vocab)
        have = set(known)
        new = [word for word in wanted if word not in have]
        if new:
            _extend_softmax(bilm, known + new, config.vocab)
    _set_softmax_kind(bilm, config.vocab)
    return bilm, False


def load_initial_bilm(config: PretrainConfig, source: str) -> BiLM:
    """Load a biLM to start from, and widen it if training.grow is set.

    source (str): The name of a bundled biLM, or a path.
    """
    bilm = load_bilm(source, engine="torch")
    if not bilm.word_ids.fixed_boundaries:
        raise ValueError(
            f"{source}: found an encoder whose vector of a word depends on the "
            "sentence; expected one that encodes each word alone"
        )
    if not config.training.grow:
        return bilm
    try:
        return grow(bilm, config.bilm_config().lstm)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _set_softmax_kind(bilm: BiLM, config: VocabConfig) -> None:
    """Change a loaded softmax to the kind that the config names, unless that is
    "auto"."""
    if config.softmax == "auto" or bilm.config.softmax is None:
        return
    wanted = make_softmax_config(bilm.config.softmax.n_words, config)
    if bilm.config.softmax.type == wanted.type == "adaptive":
        return
    if "adaptive" in (bilm.config.softmax.type, wanted.type):
        raise ValueError(
            f"vocab.softmax is '{config.softmax}' and the biLM to start from has the "
            f"kind '{bilm.config.softmax.type}'; expected the same, or 'auto'"
        )
    old = cast(FullSoftmax, bilm.softmax)
    _set_softmax(bilm, cast(list[str], bilm.vocab), config)
    cast(FullSoftmax, bilm.softmax).load_state_dict(old.state_dict())


def _set_softmax(bilm: BiLM, words: list[str], config: VocabConfig) -> None:
    sizes = make_softmax_config(len(words), config)
    head = make_softmax(sizes, bilm.config.lstm.projection_dim)
    if isinstance(head, FullSoftmax):  # torch initializes an adaptive softmax
        head.reset_parameters()
    bilm.softmax = head.to(bilm.device)
    bilm.vocab = words
    bilm.config = replace(bilm.config, softmax=sizes)


def _extend_softmax(bilm: BiLM, words: list[str], config: VocabConfig) -> None:
    """Add rows for new words. The rows of known words keep their weights."""
    old = bilm.softmax
    _set_softmax(bilm, words, config)
    new = bilm.softmax
    if not (isinstance(old, FullSoftmax) and isinstance(new, FullSoftmax)):
        raise ValueError(
            "found an adaptive softmax, to which no words can be added; expected a "
            "full or sampled one"
        )
    with torch.no_grad():
        new.weight[: old.n_words] = old.weight
        new.bias[: old.n_words] = old.bias
        # So a new word starts as likely as a known one of medium frequency.
        new.bias[old.n_words :] = old.bias.median()
