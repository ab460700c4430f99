"""Find the tokens of a text that are nearest to a word in its context (Table 4 of the
paper)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.vocab import Vocab

from ..bilm import BiLMBase
from .cosine_search import ApproximateSearch, Nearest, find_nearest
from .layer_vectors import add_mix, to_unit_length
from .neighbor_queries import Query
from .static_vectors import look_up
from .token_index import TokenIndex

# Search for this many times more tokens than are wanted, because the query itself and
# repeated sentences are left out. If too few remain, search for even more.
SURPLUS = 4
CHUNK_WORDS = 2**14  # words that are looked up at a time

Search = Callable[[np.ndarray, int], list[Nearest]]


def choose_layers(names: Sequence[str], chosen: str | None) -> list[str]:
    """Return the names of the chosen layers.

    names (Sequence[str]): The names of all layers; the last one is "mix".
    chosen (str | None): A name, "all", or None for the top layer.
    """
    if chosen is None:
        return [names[-2]]
    if chosen == "all":
        return list(names)
    if chosen not in names:
        raise ValueError(
            f"found --layer {chosen}; expected 'all' or one of {', '.join(names)}"
        )
    return [chosen]


def find_neighbors(
    bilm: BiLMBase,
    index: TokenIndex,
    queries: Sequence[Query],
    *,
    layers: Sequence[str],
    top: int = 10,
    approximate: bool = False,
    static: Vocab | None = None,
) -> list[dict[str, Any]]:
    """Find the nearest neighbours of each query.

    layers (Sequence[str]): The names of the layers to compare.
    top (int): How many neighbours to find in each layer.
    static (Vocab | None): Word vectors for the search for the nearest words without
        context; by default, the vectors of layer 0 are used.
    RETURNS (list[dict[str, Any]]): A dict for each query: "word", "sentence",
        "position", the nearest tokens in each layer ("layers"), and the words of the
        text that are nearest without context ("static").
    """
    # Otherwise the last bits of the vectors could depend on what was embedded before.
    bilm.clear_cache()
    vectors = np.stack(
        [
            add_mix(array[:, query.position])
            for array, query in zip(bilm.embed([q.words for q in queries]), queries)
        ]
    )  # (n_queries, n_layers + 2, width)
    by_layer = []
    for name in layers:
        search = _choose_search(index, name, approximate)
        chosen = vectors[:, index.layer_names.index(name)]
        by_layer.append(_find_tokens(index, queries, chosen, search, top))
    labels = [name if name == "mix" else int(name) for name in layers]
    return [
        {
            "word": query.words[query.position],
            "sentence": join_words(query.words),
            "position": query.position,
            "layers": [
                {"layer": label, "neighbors": lists[number]}
                for label, lists in zip(labels, by_layer)
            ],
            "static": _find_words(index, query, vectors[number, 0], static, top),
        }
        for number, query in enumerate(queries)
    ]


def join_words(words: Iterable[str]) -> str:
    """Join words with spaces. A space within a word, which is rare, becomes a no-break
    space, so that positions of words can be counted."""
    return " ".join(word.replace(" ", "\u00a0") for word in words)


def _choose_search(index: TokenIndex, layer: str, approximate: bool) -> Search:
    vectors = index.get_layer(layer)
    if approximate:
        path = index.folder / f"layer-{layer}.usearch"
        return ApproximateSearch(path, vectors).find_nearest
    return lambda queries, k: find_nearest(vectors, queries, k)


def _find_tokens(
    index: TokenIndex,
    queries: Sequence[Query],
    vectors: np.ndarray,
    search: Search,
    top: int,
) -> list[list[dict[str, Any]]]:
    """Find the nearest tokens of each query.

    vectors (np.ndarray): The vectors of the queries, (n_queries, width).
    """
    done: dict[int, list[dict[str, Any]]] = {}
    k = SURPLUS * (top + 1)
    while len(done) < len(queries):
        pending = [number for number in range(len(queries)) if number not in done]
        for number, found in zip(pending, search(vectors[pending], k)):
            neighbors = _drop_repeated(index, queries[number], found)
            is_all = len(found[0]) < k  # no more tokens in the text
            if len(neighbors) >= top or is_all:
                done[number] = neighbors[:top]
        k *= SURPLUS
    return [done[number] for number in range(len(queries))]


def _drop_repeated(
    index: TokenIndex, query: Query, found: Nearest
) -> list[dict[str, Any]]:
    """Return the tokens that were found, with their sentences.

    The query itself is left out. If the text contains the same sentence several times,
    only one of them is kept.
    """
    seen = {(join_words(query.words), query.position)}
    neighbors = []
    for token, cosine in zip(found[0].tolist(), found[1].tolist()):
        number, position = index.locate(token)
        words = index.get_sentence(number)
        sentence = join_words(words)
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


def _find_words(
    index: TokenIndex, query: Query, vector: np.ndarray, static: Vocab | None, top: int
) -> list[dict[str, Any]]:
    """Find the words of the text that are nearest to the word of the query, without
    regard to context.

    vector (np.ndarray): The word in layer 0, (width,); only used without `static`.
    RETURNS (list[dict[str, Any]]): Each "word" and its "cosine", nearest first. The
        list is empty if the word has no static vector.
    """
    word = query.words[query.position]
    if static is not None:
        vector = look_up(static, [word])[0]
        if not vector.any():
            return []
    first_tokens = np.unique(index.tokens, return_index=True)[1]  # of each word
    best: list[dict[str, Any]] = []
    for start in range(0, len(index.words), CHUNK_WORDS):
        words = index.words[start : start + CHUNK_WORDS]
        if static is not None:
            table = to_unit_length(look_up(static, words))
        else:
            table = index.get_layer("0")[first_tokens[start : start + CHUNK_WORDS]]
        known = np.flatnonzero(table.any(1))  # the words that have a vector
        [(rows, cosines)] = find_nearest(table[known], vector[None], top + 1)
        best += [
            {"word": words[row], "cosine": cosine}
            for row, cosine in zip(known[rows].tolist(), cosines.tolist())
            if words[row] != word
        ]
    return sorted(best, key=lambda item: -item["cosine"])[:top]
