"""Hold what the page explores: biLMs, indexes of texts, and a tokenizer.

In this folder, n_layers includes layer 0.
"""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Token

from ..bilm import BiLMBase
from ..text.sentence_starts import find_sentence_starts
from .corpus_search import CorpusSearch
from .page_requests import MAX_RUN, MAX_SENTENCES, MAX_WORDS, BadRequest
from .vector_cache import VectorCache

KEPT_TEXTS = 8  # texts whose words are kept


class Sentence(NamedTuple):
    """A sentence that was typed.

    words (tuple[str, ...]): Its words.
    spaces (tuple[bool, ...]): For each word, whether a space follows it.
    """

    words: tuple[str, ...]
    spaces: tuple[bool, ...]


class ExploredBiLM:
    """A biLM with its name and, if there is one, the corpus that was indexed with it.

    name (str): The name to show.
    bilm (BiLMBase): The biLM. Only its config and the methods `embed`, `predict` and
        `surprisal` are used.
    """

    def __init__(
        self, name: str, bilm: BiLMBase, corpus: CorpusSearch | None = None
    ) -> None:
        self.name = name
        self.bilm = bilm
        self.corpus = corpus
        self.cache = VectorCache(bilm)
        self.has_softmax = _has_softmax(bilm)

    @property
    def n_layers(self) -> int:
        """Return the number of layers, with layer 0."""
        return self.bilm.config.lstm.n_layers + 1


class Explorer:
    """Splits texts into words and computes their layers.

    bilms (Sequence[ExploredBiLM]): One or more biLMs, which are compared.
    nlp (Language): A pipeline whose tokenizer is used for all of them.
    """

    def __init__(self, bilms: Sequence[ExploredBiLM], nlp: Language) -> None:
        self.bilms = list(bilms)
        self.nlp = nlp
        # Requests are answered in several threads, but not every tokenizer and no cache
        # can be used by two at once.
        self._lock = Lock()
        self._split = lru_cache(KEPT_TEXTS)(self._split_text)
        self.embed(0, [Sentence(("a",), (False,))])  # warms up the biLM

    def split(self, text: str) -> list[Sentence]:
        """Split a text into sentences and words. A line is at least one sentence. Raise
        BadRequest if there are too many."""
        with self._lock:
            return self._split(text)

    def embed(self, number: int, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """Compute the layers of sentences with one of the biLMs.

        RETURNS (list[np.ndarray]): (n_layers, n_words, width) for each sentence.
        """
        with self._lock:
            cache = self.bilms[number].cache
            return cache.embed([sentence.words for sentence in sentences])

    def surprisal(self, number: int, sentence: Sentence) -> np.ndarray:
        """Compute the surprisal of each word: (n_words, 2); see BiLM.surprisal."""
        with self._lock:
            return self.bilms[number].bilm.surprisal([sentence.words])[0]

    def predict(
        self, number: int, sentence: Sentence, position: int, n: int
    ) -> list[tuple[str, float]]:
        """Predict the word at a position; see BiLM.predict."""
        with self._lock:
            return self.bilms[number].bilm.predict(sentence.words, position, n)

    def _split_text(self, text: str) -> list[Sentence]:
        longest = max(map(len, text.split()), default=0)
        check_size("characters without a space", "too_long_run", longest, MAX_RUN)
        sentences: list[Sentence] = []
        for line in text.splitlines():
            doc = self.nlp.make_doc(line)
            starts = [*find_sentence_starts(doc).tolist(), len(doc)] if len(doc) else []
            for begin, end in zip(starts, starts[1:]):
                tokens = [token for token in doc[begin:end] if not token.is_space]
                if tokens:
                    sentences.append(_make_sentence(tokens))
        n_words = sum(len(sentence.words) for sentence in sentences)
        check_size("sentences", "too_many_sentences", len(sentences), MAX_SENTENCES)
        check_size("words", "too_many_words", n_words, MAX_WORDS)
        return sentences


def check_size(name: str, code: str, found: int, limit: int) -> None:
    """Raise BadRequest with a code if a text has more of something than the limit."""
    if found > limit:
        raise BadRequest(
            f"found a text with {found:,} {name}; expected at most {limit:,}",
            code,
            status=413,
            limit=limit,
        )


def _make_sentence(tokens: list[Token]) -> Sentence:
    ends = [*(token.idx for token in tokens[1:]), tokens[-1].idx + len(tokens[-1])]
    spaces = (
        end > token.idx + len(token) for token, end in zip(tokens, ends, strict=True)
    )
    return Sentence(tuple(token.text for token in tokens), tuple(spaces))


def _has_softmax(bilm: BiLMBase) -> bool:
    """Find out whether a biLM can predict words, by trying it."""
    try:
        bilm.surprisal([["a"]])
    except ValueError:
        return False
    return True
