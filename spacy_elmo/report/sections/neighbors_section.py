"""The section on nearest neighbours."""

from typing import NamedTuple

from ...results import LayerNeighbors, Neighbors, StaticNeighbor, WordInContext
from ..formatting import layer_label, mark_token
from ..load import ResultFile
from ..page_parts import Cell, Group, MarkedText, Table


class QueryNeighbors(NamedTuple):
    """A word in its sentence, its neighbours in each layer, and its neighbours without
    context."""

    query: MarkedText
    layers: dict[str, Table]
    static: list[StaticNeighbor]


def make_neighbors_group(found: ResultFile[Neighbors]) -> Group:
    queries = [
        QueryNeighbors(
            _mark_word(query),
            {layer_label(layer.layer): _make_table(layer) for layer in query.layers},
            query.static or [],
        )
        for query in found.data.queries
    ]
    return Group(found.name, found.file, more=queries)


def _make_table(layer: LayerNeighbors) -> Table:
    rows: list[list[Cell]] = [
        [_mark_word(neighbor), f"{neighbor.cosine:.2f}"] for neighbor in layer.neighbors
    ]
    return Table(["neighbour in its sentence", "cosine"], rows, 1)


def _mark_word(word: WordInContext) -> MarkedText:
    return mark_token(word.tokens, word.position)
