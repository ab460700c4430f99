"""The words that the softmax knows."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch

from ..bilm import BiLM, SoftmaxConfig, load_bilm
from ..bilm.encoders import WordEncoder
from ..bilm.formats.small_files import read_vocab
from ..bilm.softmax import FullSoftmax, make_softmax
from ..bilm.training.grow import grow
from .corpus import Corpus
from .pretrain_config import PretrainConfig, VocabConfig

FULL_UP_TO = 30_000  # words; sampling does not pay below


def choose_words(corpus: Corpus, settings: VocabConfig) -> list[str]:
    """RETURNS (list[str]): The special words, then the most frequent ones of the text,
    as many as the settings allow."""
    special = list(WordEncoder.SPECIAL)
    words = [
        word
        for word, count in zip(corpus.words, corpus.counts)
        if count >= settings.min_count and word not in special
    ]
    return special + words[: max(0, settings.max_words - len(special))]


def softmax_config(n_words: int, settings: VocabConfig) -> SoftmaxConfig:
    kind = settings.softmax
    if kind == "auto":
        kind = "full" if n_words <= FULL_UP_TO else "sampled"
    if kind == "sampled" and settings.n_samples >= n_words:
        kind = "full"  # nothing to sample from
    return SoftmaxConfig(n_words=n_words, type=kind, n_samples=settings.n_samples)


def make_bilm(config: PretrainConfig, corpus: Corpus) -> tuple[BiLM, bool]:
    """A biLM to be trained: new, or what paths.initialize_from names with a vocabulary
    for this text.

    RETURNS (tuple[BiLM, bool]): The biLM, and whether its softmax is new while the rest
        has learned something.
    """
    given = given_words(config)
    if config.paths.initialize_from is None:
        words = given or choose_words(corpus, config.vocab)
        sizes = replace(
            config.bilm_config(), softmax=softmax_config(len(words), config.vocab)
        )
        return BiLM(sizes, vocab=words), False
    bilm = load_source(config, config.paths.initialize_from)
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
    _use_settings(bilm, config.vocab)
    return bilm, False


def given_words(config: PretrainConfig) -> list[str] | None:
    """RETURNS (list[str] | None): The words of paths.output_vocab."""
    path = config.paths.output_vocab
    return None if path is None else read_vocab(Path(path))


def load_source(config: PretrainConfig, source: str) -> BiLM:
    """RETURNS (BiLM): One to go on from, as large as the config wants it."""
    bilm = load_bilm(source)
    if not bilm.encoder.fixed_boundaries:
        raise ValueError(
            f"{source}: found an encoder whose vectors of a word depend on its "
            "sentence; expected one that reads word by word"
        )
    if not config.training.grow:
        return bilm
    try:
        return grow(bilm, config.bilm_config().lstm)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _use_settings(bilm: BiLM, settings: VocabConfig) -> None:
    """Train a softmax that was loaded in the way the settings say, unless "auto"."""
    if settings.softmax == "auto" or bilm.config.softmax is None:
        return
    wanted = softmax_config(bilm.config.softmax.n_words, settings)
    if bilm.config.softmax.type == wanted.type == "adaptive":
        return
    if "adaptive" in (bilm.config.softmax.type, wanted.type):
        raise ValueError(
            f"vocab.softmax is '{settings.softmax}' and the biLM to go on from has one "
            f"that is {bilm.config.softmax.type}; expected the same, or 'auto'"
        )
    old = cast(FullSoftmax, bilm.softmax)
    _set_softmax(bilm, cast(list[str], bilm.vocab), settings)
    cast(FullSoftmax, bilm.softmax).load_state_dict(old.state_dict())


def _set_softmax(bilm: BiLM, words: list[str], settings: VocabConfig) -> None:
    sizes = softmax_config(len(words), settings)
    head = make_softmax(sizes, bilm.config.lstm.projection_dim)
    if isinstance(head, FullSoftmax):  # torch draws the weights of its own
        head.reset_parameters()
    bilm.softmax = head.to(bilm.device)
    bilm.vocab = words
    bilm.config = replace(bilm.config, softmax=sizes)


def _extend_softmax(bilm: BiLM, words: list[str], settings: VocabConfig) -> None:
    """New rows for new words; the old ones stay as they are."""
    old = bilm.softmax
    _set_softmax(bilm, words, settings)
    new = bilm.softmax
    if not (isinstance(old, FullSoftmax) and isinstance(new, FullSoftmax)):
        raise ValueError(
            "the vocabulary is to be extended and there is an adaptive softmax, whose "
            "words have fixed places; expected a full or sampled one"
        )
    with torch.no_grad():
        new.weight[: old.n_words] = old.weight
        new.bias[: old.n_words] = old.bias
        # As unlikely as a known word of no special frequency.
        new.bias[old.n_words :] = old.bias.median()
