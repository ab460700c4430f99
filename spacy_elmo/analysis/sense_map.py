"""Measure whether occurrences of a word with the same sense have similar vectors, and
compute a map that shows each occurrence as a point."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..bilm import BiLMBase
from ..regular_files import read_regular
from ..text.json_lines import parse_json
from .layer_vectors import (
    ROUNDING,
    add_mix,
    embed_stream,
    layer_names,
    to_unit_length,
)

FIELDS = {"word": str, "sense": str, "text": str, "start": int, "end": int}


class Occurrence(NamedTuple):
    """A word in a text, from the character `start` to `end`, and its sense there."""

    word: str
    sense: str
    text: str
    start: int
    end: int


def read_occurrences(path: Path) -> list[Occurrence]:
    """Read a .jsonl file with the fields of an Occurrence in each line."""
    found = []
    try:
        lines = read_regular(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not UTF-8; expected JSON lines") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except (ValueError, RecursionError):
            record = None
        found.append(_make_occurrence(record, f"{path}:{number}"))
    if not found:
        raise ValueError(f"{path}: found no occurrences; expected JSON lines")
    return found


def _make_occurrence(record: Any, where: str) -> Occurrence:
    if not isinstance(record, dict) or any(
        not isinstance(record.get(name), kind) for name, kind in FIELDS.items()
    ):
        names = ", ".join(FIELDS)
        raise ValueError(f"{where}: expected a JSON object with {names}")
    occurrence = Occurrence(*(record[name] for name in FIELDS))
    written = "".join((occurrence.word, occurrence.sense, occurrence.text))
    if any("\ud800" <= char <= "\udfff" for char in written):
        raise ValueError(f"{where}: found half a character; expected valid Unicode")
    if not 0 <= occurrence.start < occurrence.end <= len(occurrence.text):
        raise ValueError(
            f"{where}: found characters {occurrence.start} to {occurrence.end} of a "
            f"text with {len(occurrence.text)}; expected a part of the text"
        )
    return occurrence


def occurrence_vectors(
    bilm: BiLMBase, nlp: Language, occurrences: Iterable[Occurrence]
) -> np.ndarray:
    """Compute all vectors of each occurrence, in the order of `vector_names`.

    First come the means of the word's tokens, in each layer and in the mix. Then come
    the context vectors of the layers from 1 on, and last their sentence vectors.

    RETURNS (np.ndarray): (n_occurrences, 3 * n_layers + 2, width).
    """

    def tokenize(occurrence: Occurrence) -> tuple[list[str], list[int]]:
        return _find_tokens(nlp.make_doc(occurrence.text), occurrence)

    stream = embed_stream(bilm, map(tokenize, occurrences), lambda item: item[0])
    return np.stack(
        [
            np.concatenate(
                [
                    add_mix(layers[:, rows].mean(1)),
                    context_vectors(layers, rows),
                    sentence_vectors(layers, rows),
                ]
            )
            for (_, rows), layers in stream
        ]
    )


def vector_names(bilm: BiLMBase) -> list[str]:
    numbers = range(1, bilm.config.lstm.n_layers + 1)
    around = [f"{kind} {j}" for kind in ("context", "sentence") for j in numbers]
    return [*layer_names(bilm), *around]


def context_vectors(layers: np.ndarray, rows: list[int]) -> np.ndarray:
    """Return the forward state of the token before a word and the backward state of the
    token after it, from which the biLM predicts the word.

    The form of the word has no influence on these vectors, but it dominates the vectors
    of the word itself. In Korean, the form of a noun includes all particles attached.

    layers (np.ndarray): (n_layers + 1, n_tokens, width).
    rows (list[int]): The tokens of the word.
    RETURNS (np.ndarray): (n_layers, width), with zeros beyond the ends of the sentence.
    """
    n_tokens, half = layers.shape[1], layers.shape[2] // 2
    found = np.zeros((len(layers) - 1, 2 * half), dtype=layers.dtype)
    if rows[0] > 0:
        found[:, :half] = layers[1:, rows[0] - 1, :half]
    if rows[-1] + 1 < n_tokens:
        found[:, half:] = layers[1:, rows[-1] + 1, half:]
    return found


def sentence_vectors(layers: np.ndarray, rows: list[int]) -> np.ndarray:
    """Return the mean of all tokens except those of the word.

    This includes words far away, which may be the ones that reveal the sense.

    layers (np.ndarray): (n_layers + 1, n_tokens, width).
    rows (list[int]): The tokens of the word.
    RETURNS (np.ndarray): (n_layers, width), zeros if there are no other tokens.
    """
    others = np.delete(layers[1:], rows, axis=1)
    return others.sum(1) / max(1, others.shape[1])


def _find_tokens(doc: Doc, occurrence: Occurrence) -> tuple[list[str], list[int]]:
    """Return the words of a text, and the positions of those that overlap with the
    occurrence."""
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
    """Return how often the nearest other occurrence has the same sense.

    If several occurrences are equally near, the share of them with the same sense
    counts. In layer 0, all occurrences of the same form are equally near.

    vectors (np.ndarray): (n_occurrences, width).
    senses (list[str]): The sense of each occurrence.
    RETURNS (float): A share from 0 to 1.
    """
    units = to_unit_length(vectors)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines >= cosines.max(1, keepdims=True) - ROUNDING
    same = np.array([[sense == other for other in senses] for sense in senses])
    return float(((nearest & same).sum(1) / nearest.sum(1)).mean())


def project_to_plane(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to unit length, and project them onto the two directions in which
    they differ most (PCA).

    vectors (np.ndarray): (n, width).
    RETURNS (np.ndarray): Coordinates, (n, 2). On each axis, the coordinate farthest
        from 0 is positive, so that the same data is never drawn as a mirror image.
    """
    units = to_unit_length(vectors)
    left, sizes, _ = np.linalg.svd(units - units.mean(0), full_matrices=False)
    points = np.zeros((len(vectors), 2))
    found = (left * sizes)[:, :2]
    points[:, : found.shape[1]] = found
    farthest = np.abs(points).argmax(0)
    signs = np.sign(points[farthest, [0, 1]])
    return points * np.where(signs == 0, 1, signs)


def map_senses(
    bilm: BiLMBase, nlp: Language, occurrences: list[Occurrence]
) -> dict[str, Any]:
    """Measure and map the occurrences of each word by each kind of vector.

    RETURNS (dict[str, Any]): "words" has for each word the share of its most frequent
        sense ("majority"), its occurrences, and the accuracy and the points of each
        kind of vector ("layers"). "mean" has the mean accuracy of each kind of vector
        over all words.
    """
    by_word: dict[str, list[int]] = {}
    for number, occurrence in enumerate(occurrences):
        by_word.setdefault(occurrence.word, []).append(number)
    for word, numbers in by_word.items():
        if len(numbers) < 2:
            raise ValueError(
                f"found one occurrence of '{word}'; expected at least two of each word"
            )
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
    """Measure and map the occurrences of one word.

    vectors (np.ndarray): (n_occurrences, len(names), width).
    """
    senses = [occurrence.sense for occurrence in occurrences]
    layers = [
        {
            "layer": name,
            "accuracy": neighbor_accuracy(vectors[:, j], senses),
            "points": project_to_plane(vectors[:, j]).round(4).tolist(),
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
