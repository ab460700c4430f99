"""Answer the questions of the page. All answers are dicts that can be written as JSON.

"answers" has one item for each biLM, in their order. An item is None if its biLM cannot
answer, because it has no softmax or no corpus.
"""

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..analysis.layer_vectors import to_unit_length
from .explorer import ExploredBiLM, Explorer, Sentence
from .mixed_vectors import find_largest, fit_weights, mix_layers
from .page_requests import (
    MAX_CHARACTERS,
    BadRequest,
    HeatMapRequest,
    NeighborsRequest,
    SentenceRequest,
    TextRequest,
    WordRequest,
)

TOP = 12  # neighbours and predictions
NO_SPACE_BEFORE = re.compile(r"[.,;:!?%…)\]}”’]+|['’]\w{1,2}|n['’]t")
CONTEXT = 14  # words that are shown on each side of a neighbour


def describe(explorer: Explorer) -> dict[str, Any]:
    """Describe what is explored."""
    return {
        "lang": explorer.nlp.lang,
        "max_characters": MAX_CHARACTERS,
        "bilms": [_describe_bilm(each) for each in explorer.bilms],
    }


def answer_text(explorer: Explorer, request: TextRequest) -> dict[str, Any]:
    """Split a text into sentences and words."""
    sentences = explorer.split(request.text)
    return {"sentences": [sentence._asdict() for sentence in sentences]}


def prepare_answers(explorer: Explorer, request: TextRequest) -> None:
    """Compute the layers of a text while the reader chooses a word."""
    sentences = explorer.split(request.text)
    for number in range(len(explorer.bilms)):
        explorer.embed(number, sentences)


def answer_neighbors(explorer: Explorer, request: NeighborsRequest) -> dict[str, Any]:
    """Find the contexts that are nearest to a word, in the text or in a corpus."""
    _check_weights(explorer, request.weights)
    sentences = explorer.split(request.text)
    _check_word(sentences, request)
    find = _find_typed if request.place == "typed" else _find_in_corpus
    numbers = range(len(explorer.bilms))
    return {"answers": [find(explorer, n, sentences, request) for n in numbers]}


def answer_predictions(explorer: Explorer, request: WordRequest) -> dict[str, Any]:
    """Find words that are likely at the place of a word."""
    sentence = _check_word(explorer.split(request.text), request)

    def predict(number: int) -> list[dict[str, Any]]:
        found = explorer.predict(number, sentence, request.word, TOP)
        return [{"word": word, "share": _round(share)} for word, share in found]

    return {"answers": _ask_softmax(explorer, predict)}


def answer_surprisal(explorer: Explorer, request: SentenceRequest) -> dict[str, Any]:
    """Compute the surprisal of each word of a sentence, in bits: given the words before
    it, and given the words after it."""
    sentence = _get_sentence(explorer.split(request.text), request.sentence)

    def compute(number: int) -> list[list[float | None]]:
        rows = explorer.surprisal(number, sentence).tolist()
        return [[_round(bits) for bits in row] for row in rows]

    return {"answers": _ask_softmax(explorer, compute)}


def answer_heat_map(explorer: Explorer, request: HeatMapRequest) -> dict[str, Any]:
    """Compute the cosine of each word of one sentence with each word of another one:
    rows for the words of the first, columns for those of the second."""
    _check_weights(explorer, request.weights)
    sentences = explorer.split(request.text)
    pair = [_get_sentence(sentences, n) for n in (request.first, request.second)]
    answers = []
    for number, each in enumerate(explorer.bilms):
        weights = fit_weights(request.weights, each.n_layers)
        rows, columns = (mix_layers(x, weights) for x in explorer.embed(number, pair))
        cosines = (rows @ columns.T).clip(-1, 1).tolist()
        answers.append([[_round(cosine) for cosine in row] for row in cosines])
    return {"answers": answers}


def _describe_bilm(each: ExploredBiLM) -> dict[str, Any]:
    index = None if each.corpus is None else each.corpus.index
    return {
        "name": each.name,
        "n_layers": each.n_layers,
        "has_softmax": each.has_softmax,
        "n_corpus_words": None if index is None else len(index.tokens),
    }


def _find_typed(
    explorer: Explorer,
    number: int,
    sentences: list[Sentence],
    request: NeighborsRequest,
) -> list[dict[str, Any]]:
    """Find the nearest words of the text, without the word itself."""
    weights = fit_weights(request.weights, explorer.bilms[number].n_layers)
    layers = explorer.embed(number, sentences)
    vectors = mix_layers(np.concatenate(layers, 1), weights)  # (n_words, width)
    places = [
        (i, k) for i, each in enumerate(sentences) for k in range(len(each.words))
    ]
    own = places.index((request.sentence, request.word))
    cosines = (vectors @ vectors[own]).clip(-1, 1)
    cosines[own] = -np.inf
    found = find_largest(cosines, min(TOP, len(places) - 1)).tolist()
    return [
        {
            "sentence": place,
            "position": position,
            "cosine": _round(float(cosine)),
            **_show_context(sentences[place], position),
        }
        for (place, position), cosine in ((places[n], cosines[n]) for n in found)
    ]


def _find_in_corpus(
    explorer: Explorer,
    number: int,
    sentences: list[Sentence],
    request: NeighborsRequest,
) -> list[dict[str, Any]] | None:
    """Find the nearest words of the corpus. Return None if there is no corpus."""
    each = explorer.bilms[number]
    if each.corpus is None:
        return None
    sentence = sentences[request.sentence]
    [layers] = explorer.embed(number, [sentence])
    found = each.corpus.find(
        to_unit_length(layers[:, request.word]),
        fit_weights(request.weights, each.n_layers),
        TOP,
        (list(sentence.words), request.word),
    )
    return [
        {
            "position": position,
            "cosine": _round(cosine),
            **_show_context(_guess_spaces(words), position),
        }
        for words, position, cosine in found
    ]


def _guess_spaces(words: Sequence[str]) -> Sentence:
    """Guess where a text had spaces, because an index stores words alone."""
    pairs = zip(words, [*words[1:], ""])
    spaces = (not (NO_SPACE_BEFORE.fullmatch(b) or a in "([{“‘") for a, b in pairs)
    return Sentence(tuple(words), tuple(spaces))


def _show_context(sentence: Sentence, position: int) -> dict[str, str]:
    """Return a word, and the text before and after it, shortened to CONTEXT words."""
    words, spaces = sentence
    begin, end = max(0, position - CONTEXT), position + 1 + CONTEXT
    text = [word + " " * space for word, space in zip(words, spaces)]
    return {
        "before": "… " * (begin > 0) + "".join(text[begin:position]),
        "word": words[position],
        "after": " " * spaces[position]
        + "".join(text[position + 1 : end]).rstrip(" ")
        + " …" * (end < len(words)),
    }


def _ask_softmax(explorer: Explorer, ask: Callable[[int], Any]) -> list[Any]:
    return [
        ask(number) if each.has_softmax else None
        for number, each in enumerate(explorer.bilms)
    ]


def _check_weights(explorer: Explorer, weights: Sequence[float]) -> None:
    n_layers = max(each.n_layers for each in explorer.bilms)
    if len(weights) != n_layers or not sum(weights):
        raise BadRequest(
            f"'weights' has {len(weights)} numbers with the sum {sum(weights):g}; "
            f"expected {n_layers}, one for each layer, and not all of them 0"
        )


def _check_word(sentences: list[Sentence], request: WordRequest) -> Sentence:
    """Return the sentence of a request. Raise BadRequest if it has no such word."""
    sentence = _get_sentence(sentences, request.sentence)
    if request.word >= len(sentence.words):
        raise BadRequest(
            f"'word' is {request.word}; expected a number below "
            f"{len(sentence.words)}, the number of words in the sentence"
        )
    return sentence


def _get_sentence(sentences: list[Sentence], number: int) -> Sentence:
    if number >= len(sentences):
        raise BadRequest(
            f"the number of a sentence is {number}; expected one below "
            f"{len(sentences)}, the number of sentences in the text"
        )
    return sentences[number]


def _round(value: float) -> float | None:
    """Round a number for the page; None if it is not finite, which JSON cannot
    write."""
    return round(value, 4) if isfinite(value) else None
