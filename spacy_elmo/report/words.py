"""The sections on words in context: maps of senses, and nearest neighbours."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from ..results import (
    InContext,
    Neighbors,
    NeighborsOfLayer,
    Senses,
    SenseWord,
    StaticNeighbor,
)
from .charts import Rows
from .figures import (
    Cell,
    Choice,
    Figure,
    Group,
    Marked,
    Table,
    layer_label,
    mark_token,
    percent,
)
from .load import Found
from .xy_charts import scatter


class WordMap(NamedTuple):
    """A word, its map, and by layer how many of its senses are found."""

    word: str
    lang: str
    accuracies: dict[str, str]
    majority: str
    figure: Figure


def senses(found: Found[Senses], place: int) -> Group:
    """place (int): Of the file among all, so that their choices do not mix."""
    data = found.data
    options = {layer: layer_label(layer) for layer in data.layers}
    choice = Choice("Layer", f"layer{place}", options, best_layer(data))
    maps = [_word_map(word, data.lang, choice) for word in data.words]
    tables = {"Senses found": _accuracies(data)}
    return Group(found.name, found.file, choice=choice, tables=tables, more=maps)


def mean_accuracies(data: Senses) -> dict[str, float]:
    """RETURNS (dict[str, float]): By layer, the mean of all words."""
    return {
        layer: fmean(word.layers[number].accuracy for word in data.words)
        for number, layer in enumerate(data.layers)
    }


def best_layer(data: Senses) -> str:
    means = mean_accuracies(data)
    return max(means, key=lambda layer: means[layer])


def _accuracies(data: Senses) -> Table:
    rows: list[list[Cell]] = []
    for word in data.words:
        n = len(word.occurrences)
        cells = [percent(layer.accuracy, 0) for layer in word.layers]
        rows.append([word.word, f"{n}", percent(word.majority, 0), *cells])
    means = [percent(mean, 0) for mean in mean_accuracies(data).values()]
    total = sum(len(word.occurrences) for word in data.words)
    majority = percent(fmean(word.majority for word in data.words), 0)
    rows.append(["all, mean of words", f"{total}", majority, *means])
    names = [layer_label(layer) for layer in data.layers]
    columns = ["word", "uses", "most frequent", *names]
    return Table(columns, rows, len(columns) - 1)


def _word_map(word: SenseWord, lang: str, choice: Choice) -> WordMap:
    names = list(dict.fromkeys(each.sense for each in word.occurrences))
    maps = [scaled(layer.points) for layer in word.layers]
    rows: Rows = []
    cells: list[list[Cell]] = []
    for place, each in enumerate(word.occurrences):
        marked = Marked(
            each.text[: each.start],
            each.text[each.start : each.end],
            each.text[each.end :],
            lang,
        )
        row: dict[str, Any] = {"series": each.sense, **marked._asdict()}
        for number, points in enumerate(maps):
            row[f"x{number}"], row[f"y{number}"] = points[place]
        rows.append(row)
        cells.append([each.sense, marked])
    cells.sort(key=lambda cell: names.index(str(cell[0])))
    alt = (
        f"Map of {len(rows)} occurrences of {word.word} in {len(names)} senses: "
        f"{', '.join(names)}."
    )
    figure = Figure(
        word.word,
        alt,
        scatter(rows, names, choice),
        Table(["sense", "sentence"], cells),
    )
    accuracies = {layer.layer: percent(layer.accuracy, 0) for layer in word.layers}
    return WordMap(word.word, lang, accuracies, percent(word.majority, 0), figure)


def scaled(points: Sequence[Sequence[float]]) -> list[list[float]]:
    """RETURNS (list[list[float]]): Moved, and scaled alike in both directions, to fit
    between -1 and 1."""
    axes = list(zip(*points))
    middles = [(min(axis) + max(axis)) / 2 for axis in axes]
    largest = max(max(axis) - min(axis) for axis in axes) / 2 or 1.0
    return [
        [round((x - middle) / largest, 3) for x, middle in zip(point, middles)]
        for point in points
    ]


class NeighborsOf(NamedTuple):
    """A word in its sentence, what is near it by layer, and words by static vectors."""

    query: Marked
    layers: dict[str, Table]
    static: list[StaticNeighbor]


def neighbors(found: Found[Neighbors]) -> Group:
    queries = [
        NeighborsOf(
            _marked(query),
            {layer_label(layer.layer): _neighbors(layer) for layer in query.layers},
            query.static or [],
        )
        for query in found.data.queries
    ]
    return Group(found.name, found.file, more=queries)


def _neighbors(layer: NeighborsOfLayer) -> Table:
    rows: list[list[Cell]] = [
        [_marked(each), f"{each.cosine:.2f}"] for each in layer.neighbors
    ]
    return Table(["nearest, in its sentence", "cosine"], rows, 1)


def _marked(found: InContext) -> Marked:
    return mark_token(found.tokens, found.position)
