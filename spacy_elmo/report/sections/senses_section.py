"""The section on words with several senses."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from ...results import Layer, Senses, SenseWord
from ..charts.base import Rows
from ..charts.xy import point_map
from ..formatting import format_percent, layer_label
from ..load import ResultFile
from ..page_parts import Cell, Choice, Figure, Group, MarkedText, Table


class WordMap(NamedTuple):
    """A map of the occurrences of a word.

    accuracies (dict[str, str]): For each layer, how often the nearest other occurrence
        has the same sense.
    majority (str): The share of the most frequent sense.
    """

    word: str
    lang: str
    accuracies: dict[str, str]
    majority: str
    figure: Figure


def make_senses_group(found: ResultFile[Senses], index: int) -> Group:
    """Make the figures and tables of a file of senses.

    index (int): The number of the file. It makes the name of the choice unique, so that
        each file has a separate choice.
    """
    data = found.data
    options = {str(layer): layer_label(layer) for layer in data.layers}
    best = str(find_best_sense_layer(data))
    choice = Choice("Layer", f"layer{index}", options, best)
    maps = [_make_word_map(word, data.lang, choice) for word in data.words]
    tables = {"Senses told apart": _make_table(data)}
    return Group(found.name, found.file, choice=choice, tables=tables, more=maps)


def mean_accuracies(data: Senses) -> dict[Layer, float]:
    """Return the mean accuracy over all words, for each layer."""
    return {
        layer: fmean(word.layers[index].accuracy for word in data.words)
        for index, layer in enumerate(data.layers)
    }


def find_best_sense_layer(data: Senses) -> Layer:
    means = mean_accuracies(data)
    return max(means, key=lambda layer: means[layer])


def _make_table(data: Senses) -> Table:
    rows: list[list[Cell]] = []
    for word in data.words:
        n = len(word.occurrences)
        cells = [format_percent(layer.accuracy, 0) for layer in word.layers]
        rows.append([word.word, f"{n}", format_percent(word.majority, 0), *cells])
    means = [format_percent(mean, 0) for mean in mean_accuracies(data).values()]
    total = sum(len(word.occurrences) for word in data.words)
    majority = format_percent(fmean(word.majority for word in data.words), 0)
    rows.append(["mean over words", f"{total}", majority, *means])
    names = [layer_label(layer) for layer in data.layers]
    columns = ["word", "occurrences", "most frequent sense", *names]
    return Table(columns, rows, len(columns) - 1)


def _make_word_map(word: SenseWord, lang: str, choice: Choice) -> WordMap:
    senses = list(dict.fromkeys(found.sense for found in word.occurrences))
    maps = [scale_points(layer.points) for layer in word.layers]
    rows: Rows = []
    cells: list[list[Cell]] = []
    for index, found in enumerate(word.occurrences):
        marked = MarkedText(
            found.text[: found.start],
            found.text[found.start : found.end],
            found.text[found.end :],
            lang,
        )
        row: dict[str, Any] = {"series": found.sense, **marked._asdict()}
        for layer, points in enumerate(maps):
            row[f"x{layer}"], row[f"y{layer}"] = points[index]
        rows.append(row)
        cells.append([found.sense, marked])
    cells.sort(key=lambda cell: senses.index(str(cell[0])))
    alt = (
        f"Map of {len(rows)} occurrences of {word.word} in {len(senses)} senses: "
        f"{', '.join(senses)}."
    )
    figure = Figure(
        word.word,
        alt,
        point_map(rows, senses, choice),
        Table(["sense", "sentence"], cells),
    )
    accuracies = {
        str(layer.layer): format_percent(layer.accuracy, 0) for layer in word.layers
    }
    majority = format_percent(word.majority, 0)
    return WordMap(word.word, lang, accuracies, majority, figure)


def scale_points(points: Sequence[Sequence[float]]) -> list[list[float]]:
    """Move points and scale both axes by the same factor, so that all coordinates are
    between -1 and 1."""
    axes = list(zip(*points))
    middles = [(min(axis) + max(axis)) / 2 for axis in axes]
    largest = max(max(axis) - min(axis) for axis in axes) / 2 or 1.0
    return [
        [round((x - middle) / largest, 3) for x, middle in zip(point, middles)]
        for point in points
    ]
