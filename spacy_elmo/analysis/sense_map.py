"""Do occurrences of a word lie together by sense?"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ..bilm import BiLM
from .layer_vectors import ROUNDING, embed_stream, layer_names, unit, with_mix

FIELDS = {"word": str, "sense": str, "text": str, "start": int, "end": int}


class Occurrence(NamedTuple):
    """A word in a text, from the character start to end, and its sense there."""

    word: str
    sense: str
    text: str
    start: int
    end: int


def read_occurrences(path: Path) -> list[Occurrence]:
    """Read a .jsonl file with the fields of Occurrence in each line."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: found no UTF-8; expected JSON lines") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = srsly.json_loads(line)
        except ValueError:
            record = None
        found.append(_occurrence(record, f"{path}, line {number}"))
    if not found:
        raise ValueError(f"{path}: found no occurrences; expected JSON lines")
    return found


def _occurrence(record: Any, where: str) -> Occurrence:
    if not isinstance(record, dict) or any(
        not isinstance(record.get(name), kind) for name, kind in FIELDS.items()
    ):
        names = ", ".join(FIELDS)
        raise ValueError(f"{where}: expected JSON with {names}")
    occurrence = Occurrence(*(record[name] for name in FIELDS))
    if not 0 <= occurrence.start < occurrence.end <= len(occurrence.text):
        raise ValueError(
            f"{where}: found characters {occurrence.start} to {occurrence.end} of a "
            f"text of {len(occurrence.text)}; expected a part of it"
        )
    return occurrence


def occurrence_vectors(
    bilm: BiLM, nlp: Language, occurrences: Iterable[Occurrence]
) -> np.ndarray:
    """RETURNS (np.ndarray): For each occurrence what vector_names names: layer by layer
    and then the mix, the mean of the tokens it touches; what the words next to it say;
    and what all others of the sentence say, (n, 3 * n_layers + 2, width)."""

    def read(occurrence: Occurrence) -> tuple[list[str], list[int]]:
        return _words(nlp.make_doc(occurrence.text), occurrence)

    stream = embed_stream(bilm, map(read, occurrences), lambda item: item[0])
    return np.stack(
        [
            np.concatenate(
                [
                    with_mix(layers[:, rows].mean(1)),
                    context(layers, rows),
                    rest_of_sentence(layers, rows),
                ]
            )
            for (_, rows), layers in stream
        ]
    )


def vector_names(bilm: BiLM) -> list[str]:
    numbers = range(1, bilm.config.lstm.n_layers + 1)
    around = [f"{kind} {j}" for kind in ("context", "sentence") for j in numbers]
    return [*layer_names(bilm), *around]


def context(layers: np.ndarray, rows: list[int]) -> np.ndarray:
    """What the words around some tokens say of them: the forward h of the token before
    and the backward h of the token after, from which the biLM predicts what stands
    between. The tokens themselves, in Korean with all that is attached to a noun, have
    no part in it, which they dominate elsewhere.

    layers (np.ndarray): (n_layers + 1, n_tokens, width).
    RETURNS (np.ndarray): (n_layers, width), zeros beyond the ends of the sentence.
    """
    n_tokens, half = layers.shape[1], layers.shape[2] // 2
    found = np.zeros((len(layers) - 1, 2 * half), dtype=layers.dtype)
    if rows[0] > 0:
        found[:, :half] = layers[1:, rows[0] - 1, :half]
    if rows[-1] + 1 < n_tokens:
        found[:, half:] = layers[1:, rows[-1] + 1, half:]
    return found


def rest_of_sentence(layers: np.ndarray, rows: list[int]) -> np.ndarray:
    """The mean of all other tokens: the word that tells a sense may be far away.

    layers (np.ndarray): (n_layers + 1, n_tokens, width).
    RETURNS (np.ndarray): (n_layers, width), zeros if there are none.
    """
    others = np.delete(layers[1:], rows, axis=1)
    return others.sum(1) / max(1, others.shape[1])


def _words(doc: Doc, occurrence: Occurrence) -> tuple[list[str], list[int]]:
    """RETURNS (tuple[list[str], list[int]]): The words of a text, and which of them
    the occurrence touches."""
    tokens = [token for token in doc if not token.is_space]
    rows = [
        row
        for row, token in enumerate(tokens)
        if token.idx < occurrence.end and token.idx + len(token) > occurrence.start
    ]
    if not rows:
        raise ValueError(
            f"found only spaces from character {occurrence.start} to "
            f"{occurrence.end} of '{occurrence.text}'; expected a word"
        )
    return [token.text for token in tokens], rows


def neighbor_accuracy(vectors: np.ndarray, senses: list[str]) -> float:
    """How often the nearest other occurrence has the same sense. Where several are as
    near as each other, as all of the same form are without context: how many of them.

    vectors (np.ndarray): (n, width).
    """
    units = unit(vectors)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines >= cosines.max(1, keepdims=True) - ROUNDING
    same = np.array([[sense == other for other in senses] for sense in senses])
    return float(((nearest & same).sum(1) / nearest.sum(1)).mean())


def plane(vectors: np.ndarray) -> np.ndarray:
    """The two directions in which vectors of length 1 differ most (PCA).

    vectors (np.ndarray): (n, width).
    RETURNS (np.ndarray): Coordinates, (n, 2). In both, the value farthest from 0 is
        positive, so that a map is never a mirror image of another.
    """
    units = unit(vectors)
    left, sizes, _ = np.linalg.svd(units - units.mean(0), full_matrices=False)
    points = np.zeros((len(vectors), 2))
    found = (left * sizes)[:, :2]
    points[:, : found.shape[1]] = found
    farthest = np.abs(points).argmax(0)
    signs = np.sign(points[farthest, [0, 1]])
    return points * np.where(signs == 0, 1, signs)


def map_senses(
    bilm: BiLM, nlp: Language, occurrences: list[Occurrence]
) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): "words" (for each, the share of its most frequent sense
    and, by layer, accuracy and points) and "mean" (over words, by layer)."""
    by_word: dict[str, list[int]] = {}
    for number, occurrence in enumerate(occurrences):
        by_word.setdefault(occurrence.word, []).append(number)
    for word, numbers in by_word.items():
        if len(numbers) < 2:
            raise ValueError(f"'{word}' occurs once; expected two occurrences or more")
    vectors = occurrence_vectors(bilm, nlp, occurrences)
    names = vector_names(bilm)
    words = [
        _map_word(word, [occurrences[n] for n in numbers], vectors[numbers], names)
        for word, numbers in by_word.items()
    ]
    majority = float(np.mean([word["majority"] for word in words]))
    mean = [
        {
            "layer": name,
            "accuracy": float(np.mean([w["layers"][j]["accuracy"] for w in words])),
            "majority": majority,
        }
        for j, name in enumerate(names)
    ]
    return {"words": words, "mean": mean}


def _map_word(
    word: str, occurrences: list[Occurrence], vectors: np.ndarray, names: list[str]
) -> dict[str, Any]:
    """vectors (np.ndarray): (n, len(names), width)."""
    senses = [occurrence.sense for occurrence in occurrences]
    layers = [
        {
            "layer": name,
            "accuracy": neighbor_accuracy(vectors[:, j], senses),
            "points": plane(vectors[:, j]).round(4).tolist(),
        }
        for j, name in enumerate(names)
    ]
    return {
        "word": word,
        "majority": max(map(senses.count, senses)) / len(senses),
        "occurrences": [
            {"text": o.text, "start": o.start, "end": o.end, "sense": o.sense}
            for o in occurrences
        ],
        "layers": layers,
    }
