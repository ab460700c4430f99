"""The nearest tokens of a text to a word in its context (Table 4 of the paper)."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)

import numpy as np
from spacy.language import Language
from spacy.vocab import Vocab

from ..bilm import BiLM
from .cosine_search import Approximate, Found, nearest
from .layer_vectors import unit, with_mix
from .static_vectors import static_vectors
from .token_index import Index

MORE = 4  # times as many as wanted are looked for, since some are left out
WORDS = 2**14  # compared at a time
MARKED = re.compile(r"([^\[\]]*)\[([^\[\]]+)\]([^\[\]]*)")

Search = Callable[[np.ndarray, int], list[Found]]


class Query(NamedTuple):
    """A word in a sentence."""

    words: list[str]
    position: int


def make_query(words: list[str], word: str, position: int | None = None) -> Query:
    """position (int | None): By default, where the word is first."""
    places = [place for place, found in enumerate(words) if found == word]
    if not places:
        raise ValueError(
            f"'{word}' is not in the query; its words are: {' '.join(words)}"
        )
    if position is None:
        return Query(words, places[0])
    if position not in places:
        raise ValueError(
            f"'{word}' is not at position {position} of the query; it is at "
            + ", ".join(map(str, places))
        )
    return Query(words, position)


def split_query(nlp: Language, text: str, tokenized: bool) -> list[str]:
    """RETURNS (list[str]): Words as in the text of an index."""
    return [word for word, _ in _find_words(nlp, text, tokenized)]


def read_queries(path: Path) -> list["re.Match[str]"]:
    """RETURNS (list[re.Match[str]]): What is before a word in brackets, the word, and
    what is after it; of each line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: found no UTF-8; expected sentences") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            match = MARKED.fullmatch(line)
            if match is None:
                raise ValueError(
                    f"{path}: expected one word in brackets in line {number}, as in: "
                    "I [play] chess"
                )
            found.append(match)
    if not found:
        raise ValueError(f"{path}: found no sentences; expected a query a line")
    return found


def marked_query(nlp: Language, query: "re.Match[str]", tokenized: bool) -> Query:
    """query (re.Match[str]): As read_queries gives it."""
    before, word, after = query.groups()
    found = _find_words(nlp, before + word + after, tokenized)
    words = [text for text, _ in found]
    if (word, len(before)) not in found:
        raise ValueError(
            f"'{word}' is no word of the query; its words are: {' '.join(words)}"
        )
    return Query(words, found.index((word, len(before))))


def _find_words(nlp: Language, text: str, tokenized: bool) -> list[tuple[str, int]]:
    """RETURNS (list[tuple[str, int]]): Words, and the characters they begin at."""
    if tokenized:
        return [(found[0], found.start()) for found in re.finditer(r"\S+", text)]
    doc = nlp.make_doc(text)
    return [(token.text, token.idx) for token in doc if not token.is_space]


def choose_layers(names: Sequence[str], chosen: str | None) -> list[str]:
    """chosen (str | None): A name, "all", or None for the top layer."""
    if chosen is None:
        return [names[-2]]
    if chosen == "all":
        return list(names)
    if chosen not in names:
        raise ValueError(
            f"--layer is '{chosen}'; expected 'all' or one of {', '.join(names)}"
        )
    return [chosen]


def find_neighbors(
    bilm: BiLM,
    index: Index,
    queries: Sequence[Query],
    *,
    layers: Sequence[str],
    top: int = 10,
    approximate: bool = False,
    static: Vocab | None = None,
) -> list[dict[str, Any]]:
    """static (Vocab | None): Whose vectors the nearest words are found by; without
        one, by layer 0.
    RETURNS (list[dict[str, Any]]): For each query the nearest tokens by "layers" and
        the nearest words of the text without context ("static").
    """
    # To the last bit the same, whatever was embedded before.
    bilm.clear_cache()
    vectors = np.stack(
        [
            with_mix(array[:, query.position])
            for array, query in zip(bilm.embed([q.words for q in queries]), queries)
        ]
    )  # (n_queries, n_layers + 2, width)
    by_layer = []
    for name in layers:
        search = _search(index, name, approximate)
        chosen = vectors[:, index.names.index(name)]
        by_layer.append(_near_tokens(index, queries, chosen, search, top))
    labels = [name if name == "mix" else int(name) for name in layers]
    return [
        {
            "word": query.words[query.position],
            "sentence": show(query.words),
            "position": query.position,
            "layers": [
                {"layer": label, "neighbors": lists[number]}
                for label, lists in zip(labels, by_layer)
            ],
            "static": _near_words(index, query, vectors[number, 0], static, top),
        }
        for number, query in enumerate(queries)
    ]


def show(words: Iterable[str]) -> str:
    """RETURNS (str): Words parted by spaces. Spaces within a word, which are rare,
    become no-break spaces, so that words can be counted."""
    return " ".join(word.replace(" ", "\u00a0") for word in words)


def _search(index: Index, name: str, approximate: bool) -> Search:
    vectors = index.layer(name)
    if approximate:
        return Approximate(index.folder / f"layer-{name}.usearch", vectors).nearest
    return lambda queries, k: nearest(vectors, queries, k)


def _near_tokens(
    index: Index,
    queries: Sequence[Query],
    vectors: np.ndarray,
    search: Search,
    top: int,
) -> list[list[dict[str, Any]]]:
    """vectors (np.ndarray): (n_queries, width)."""
    done: dict[int, list[dict[str, Any]]] = {}
    k = MORE * (top + 1)
    while len(done) < len(queries):
        pending = [number for number in range(len(queries)) if number not in done]
        for number, found in zip(pending, search(vectors[pending], k)):
            neighbors = _distinct(index, queries[number], found)
            if len(neighbors) >= top or len(found[0]) < k:
                done[number] = neighbors[:top]
        k *= MORE
    return [done[number] for number in range(len(queries))]


def _distinct(index: Index, query: Query, found: Found) -> list[dict[str, Any]]:
    """Tokens with their sentences, without the query itself. A sentence that the text
    has more than once counts once."""
    seen = {(show(query.words), query.position)}
    neighbors = []
    for row, cosine in zip(found[0].tolist(), found[1].tolist()):
        number, position = index.place(row)
        words = index.sentence(number)
        sentence = show(words)
        if (sentence, position) not in seen:
            seen.add((sentence, position))
            neighbors.append(
                {
                    "word": words[position],
                    "sentence": sentence,
                    "position": position,
                    "cosine": cosine,
                }
            )
    return neighbors


def _near_words(
    index: Index, query: Query, vector: np.ndarray, static: Vocab | None, top: int
) -> list[dict[str, Any]]:
    """vector (np.ndarray): The word in layer 0, (width,).
    RETURNS (list[dict[str, Any]]): Empty if the word has no static vector.
    """
    word = query.words[query.position]
    if static is not None:
        vector = static_vectors(static, [word])[0]
        if not vector.any():
            return []
    first = np.unique(index.tokens, return_index=True)[1]  # where words are first
    best: list[dict[str, Any]] = []
    for start in range(0, len(index.words), WORDS):
        words = index.words[start : start + WORDS]
        if static is not None:
            table = unit(static_vectors(static, words))
        else:
            table = index.layer("0")[first[start : start + WORDS]]
        [(rows, cosines)] = nearest(table, vector[None], top + 1)
        best += [
            {"word": words[row], "cosine": cosine}
            for row, cosine in zip(rows.tolist(), cosines.tolist())
            if words[row] != word and table[row].any()
        ]
    return sorted(best, key=lambda item: -item["cosine"])[:top]
