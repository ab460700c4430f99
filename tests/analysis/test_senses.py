"""Test how `spacy elmo senses` measures and maps the occurrences of words."""

import json

import numpy as np
import pytest
import spacy
from helpers.analysis import cosines, make_bilm, read_json, save
from helpers.command import call, text
from helpers.manylangs_models import write_model

from spacy_elmo.analysis.sense_map import (
    Occurrence,
    map_senses,
    neighbor_accuracy,
    occurrence_vectors,
    project_to_plane,
    read_occurrences,
)
from spacy_elmo.bilm.formats.sources import load_bilm, save_bilm
from spacy_elmo.text.tokenizers import RULES

LINES = [
    ("bat", "club", "He swung the bat and missed."),
    ("bat", "animal", "The bat slept in a cave."),
    ("bat", "animal", "A bat flew over the lake at night."),
    ("bat", "animal", "Two owls and one bat live there."),
    ("ring", "sound", "Did the phone ring?"),
    ("ring", "jewel", "Her ring was lost."),
]


NAMES = ["0", "1", "2", "mix", "context 1", "context 2", "sentence 1", "sentence 2"]


def make_occurrence(word, sense, text):
    start = text.index(word)
    return Occurrence(word, sense, text, start, start + len(word))


OCCURRENCES = [make_occurrence(*line) for line in LINES]


def write(path, occurrences=OCCURRENCES):
    lines = [json.dumps(o._asdict(), ensure_ascii=False) for o in occurrences]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# Accuracy


def test_accuracy_agrees_with_a_simple_loop():
    rng = np.random.default_rng(0)
    lengths = rng.choice([0.1, 1, 10], (25, 1))
    vectors = (lengths * rng.normal(0, 1, (25, 4))).astype(np.float32)
    senses = [str(sense) for sense in rng.integers(0, 3, 25)]
    hits = 0
    for number, sense in enumerate(senses):
        others = [other for other in range(25) if other != number]
        nearest = others[cosines(vectors[others], vectors[number]).argmax()]
        hits += senses[nearest] == sense
    assert 0 < hits < 25
    assert neighbor_accuracy(vectors, senses) == hits / 25


def test_ties_count_by_share_in_any_order():
    senses = ["a", "a", "a", "b", "b", "c"]
    same = np.linspace(1, 2, 6)[:, None] * np.array([[0.3, 0.7, -0.9]])
    same = same.astype(np.float32)  # directions are the same, up to rounding
    # Of the 5 other occurrences, 2 (for a), 1 (for b) or none (for c) have the same
    # sense.
    expected = (3 * 2 + 2 * 1 + 0) / 5 / 6
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 0, 1, 4, 2]):
        found = neighbor_accuracy(same, [senses[k] for k in order])
        assert found == pytest.approx(expected)


def test_accuracy_ignores_the_lengths_of_vectors():
    vectors = np.array([[1, 0], [9, 1], [0, 1], [-1, 8]], dtype=np.float32)
    senses = ["a", "a", "b", "b"]
    assert neighbor_accuracy(vectors, senses) == 1
    assert neighbor_accuracy(vectors * [[5], [1], [0.1], [7]], senses) == 1
    assert neighbor_accuracy(vectors[[0, 2]], ["a", "b"]) == 0


# Maps


def test_map_is_the_plane_of_most_variance():
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (30, 6)) * [9, 5, 1, 1, 1, 1]
    points = project_to_plane(vectors)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sizes = np.linalg.eigvalsh(np.cov(units.T))[::-1]
    np.testing.assert_allclose(np.cov(points.T), np.diag(sizes[:2]), atol=1e-12)
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-12)


def test_map_keeps_distances_where_two_dimensions_are_enough():
    angles = np.random.default_rng(0).uniform(0, 6, 12)
    flat = np.stack([np.cos(angles), np.sin(angles)], 1)
    turn = np.linalg.qr(np.random.default_rng(1).normal(0, 1, (7, 7)))[0][:2]
    points = project_to_plane(flat @ turn)

    def distances(array):
        return np.linalg.norm(array[:, None] - array, axis=2)

    np.testing.assert_allclose(distances(points), distances(flat), atol=1e-9)


def test_map_is_the_same_for_rotated_and_mirrored_vectors():
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (20, 5))
    turn = np.linalg.qr(rng.normal(0, 1, (5, 5)))[0]
    points = project_to_plane(vectors)
    np.testing.assert_allclose(project_to_plane(vectors @ turn), points, atol=1e-9)
    np.testing.assert_allclose(project_to_plane(-vectors), points, atol=1e-9)
    assert (points.max(0) >= -points.min(0)).all()


def test_map_of_two_points():
    assert project_to_plane(np.array([[1.0], [1.0]])).tolist() == [[0, 0], [0, 0]]
    points = project_to_plane(np.eye(2))
    assert points.shape == (2, 2) and np.isfinite(points).all()


# Vectors


def test_vectors_are_the_means_of_the_tokens_that_overlap(bilm):
    nlp = spacy.blank("xx")
    occurrences = [
        Occurrence("well-known", "x", " A  well-known\nbank.", 4, 14),
        Occurrence("bank", "x", " A  well-known\nbank.", 15, 19),
        Occurrence("눈", "x", "그 눈이 온다", 2, 3),
    ]
    found = occurrence_vectors(bilm, nlp, occurrences)
    words = ["A", "well", "-", "known", "bank", "."]
    layers = bilm.embed([words])[0]
    korean = bilm.embed([["그", "눈이", "온다"]])[0]
    expected = [layers[:, 1:4].mean(1), layers[:, 4], korean[:, 1]]
    assert found.shape == (3, 8, bilm.config.width)
    for array, layered in zip(found, expected):
        np.testing.assert_allclose(array[:3], layered, atol=1e-5)
        np.testing.assert_allclose(array[3], layered.mean(0), atol=1e-5)


def test_context_vectors_are_those_of_the_tokens_beside_the_word(bilm):
    nlp = spacy.blank("xx")
    texts = ("He saw a bat there", "He saw a well-known there", "bat there", "A bat")
    words = ("bat", "well-known", "bat", "bat")
    found = occurrence_vectors(
        bilm, nlp, [make_occurrence(w, "x", t) for w, t in zip(words, texts)]
    )[:, 4:6]
    half = bilm.config.width // 2
    layers = bilm.embed([texts[0].split()])[0]
    np.testing.assert_allclose(found[0, :, :half], layers[1:, 2, :half], atol=1e-5)
    np.testing.assert_allclose(found[0, :, half:], layers[1:, 4, half:], atol=1e-5)
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)  # for any word
    assert not found[2, :, :half].any() and not found[3, :, half:].any()
    np.testing.assert_allclose(found[2, :, half:], found[0, :, half:], atol=1e-5)


def test_sentence_vectors_are_the_mean_of_all_other_tokens(bilm):
    texts = ("He saw a bat there", "bat")
    occurrences = [make_occurrence("bat", "x", text) for text in texts]
    found = occurrence_vectors(bilm, spacy.blank("xx"), occurrences)[:, 6:]
    layers = bilm.embed([texts[0].split()])[0]
    expected = layers[1:, [0, 1, 2, 4]].mean(1)
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    assert not found[1].any()


def test_an_occurrence_without_a_word_is_refused(bilm):
    with pytest.raises(ValueError, match="found only spaces from character 1 to 3"):
        occurrence_vectors(
            bilm, spacy.blank("xx"), [Occurrence("a", "x", "a  b", 1, 3)]
        )


# All words


def test_each_word_is_mapped_separately(bilm):
    nlp = spacy.blank("xx")
    found = map_senses(bilm, nlp, OCCURRENCES)
    bat, ring = found["words"]
    assert (bat["word"], ring["word"]) == ("bat", "ring")
    assert (bat["majority"], ring["majority"]) == (0.75, 0.5)
    assert [o["sense"] for o in bat["occurrences"]] == ["club", *["animal"] * 3]
    alone = map_senses(bilm, nlp, OCCURRENCES[:4])
    assert alone["words"] == [bat]
    shuffled = map_senses(bilm, nlp, [OCCURRENCES[k] for k in (4, 0, 1, 5, 2, 3)])
    assert shuffled["words"][1] == bat
    vectors = occurrence_vectors(bilm, nlp, OCCURRENCES[:4])
    for number, layer in enumerate(bat["layers"]):
        assert layer["layer"] == NAMES[number]
        np.testing.assert_allclose(
            layer["points"], project_to_plane(vectors[:, number]), atol=1e-3
        )
        senses = [o.sense for o in OCCURRENCES[:4]]
        assert layer["accuracy"] == neighbor_accuracy(vectors[:, number], senses)
    for number, mean in enumerate(found["mean"]):
        accuracies = [word["layers"][number]["accuracy"] for word in found["words"]]
        assert mean["accuracy"] == np.mean(accuracies)
        assert mean["majority"] == 0.625 and mean["layer"] == layer_name(number)
    # In layer 0, the three other occurrences of "bat" are all equally near.
    assert bat["layers"][0]["accuracy"] == pytest.approx((3 * 2 / 3 + 0) / 4)


def layer_name(number):
    return NAMES[number]


def test_a_word_that_occurs_once_is_refused(bilm):
    with pytest.raises(ValueError, match="found one occurrence of 'ring'"):
        map_senses(bilm, spacy.blank("xx"), OCCURRENCES[:5])


# The command


def test_command(bilm, source, tmp_path):
    path, out = write(tmp_path / "en.jsonl"), tmp_path / "new" / "out.json"
    done = call("senses", source, path, "--output", out)
    assert done.exit_code == 0, done.output
    data = read_json(out)
    assert list(data) == ["kind", "title", "lang", "words", "mean"]
    assert (data["kind"], data["title"], data["lang"]) == (
        "senses",
        "bilm: en.jsonl",
        "xx",
    )
    expected = map_senses(bilm, spacy.blank("xx"), OCCURRENCES)
    for found, word in zip(data["words"], expected["words"]):
        assert found["occurrences"] == word["occurrences"]
        for layer, other in zip(found["layers"], word["layers"]):
            np.testing.assert_allclose(layer["points"], other["points"], atol=1e-3)
    bat = data["words"][0]
    shown = " ".join(f"{layer['accuracy']:.0%}" for layer in bat["layers"])
    assert f"bat 4 75% {shown}" in text(done)
    assert "mean of all words 6 62.5%" in text(done)


@pytest.mark.parametrize("kind", ["hdf5", "manylangs"])
def test_command_takes_other_formats_of_bilm(bilm, tmp_path, kind):
    folder = tmp_path / "source"
    if kind == "hdf5":
        save_bilm(bilm, folder, "hdf5")
    else:
        write_model(folder)
    path, out = write(tmp_path / "en.jsonl"), tmp_path / "out.json"
    done = call("senses", folder, path, "--lang", "xx", "--output", out)
    assert done.exit_code == 0, done.output
    loaded = load_bilm(folder)
    bat = read_json(out)["words"][0]
    assert [layer["layer"] for layer in bat["layers"]] == NAMES
    vectors = occurrence_vectors(loaded, spacy.blank("xx"), OCCURRENCES[:4])
    for number, layer in enumerate(bat["layers"]):
        np.testing.assert_allclose(
            layer["points"], project_to_plane(vectors[:, number]), atol=1e-3
        )


def test_command_tokenizes_korean_without_mecab(tmp_path):
    source = save(make_bilm(lang="ko"), tmp_path / "bilm")
    lines = [("눈", "eye", "눈이 아프다."), ("눈", "snow", "밤새 눈이 왔다.")]
    path = write(tmp_path / "ko.jsonl", [make_occurrence(*line) for line in lines])
    out = tmp_path / "out.json"
    for options in ([], ["--lang", "ko"], ["--tokenizer", "spacy.Tokenizer.v1"]):
        done = call("senses", source, path, *options, "--output", out)
        assert done.exit_code == 0, done.output
        assert read_json(out)["lang"] == "ko"
        assert "눈" in done.output


def test_a_bilm_of_morphemes_gets_the_vector_of_the_noun_without_its_particle(tmp_path):
    pytest.importorskip("mecab")
    bilm = make_bilm(lang="ko", tokenizer="spacy-elmo.MecabTokenizer.v1")
    lines = [("눈", "eye", "눈이 아프다."), ("눈", "snow", "밤새 눈을 치웠다.")]
    occurrences = [make_occurrence(*line) for line in lines]
    path, out = write(tmp_path / "ko.jsonl", occurrences), tmp_path / "out.json"
    source = save(bilm, tmp_path / "bilm")
    morphemes = [
        ["눈", "이", "아프", "다", "."],
        ["밤새", "눈", "을", "치웠", "다", "."],
    ]
    layers = bilm.embed(morphemes)
    expected = np.stack([layers[0][2, 0], layers[1][2, 1]])
    for options in ([], ["--lang", "ko"]):
        done = call("senses", source, path, *options, "--output", out)
        assert done.exit_code == 0, done.output
        found = read_json(out)["words"][0]["layers"]
        # Without context, the noun is the same whatever particle follows.
        np.testing.assert_allclose(found[0]["points"], np.zeros((2, 2)), atol=1e-3)
        points = project_to_plane(expected)
        np.testing.assert_allclose(found[2]["points"], points, atol=1e-3)
    done = call("senses", source, path, "--tokenizer", RULES, "--output", out)
    assert done.exit_code == 0, done.output
    assert np.abs(read_json(out)["words"][0]["layers"][0]["points"]).max() > 0.01


def test_occurrences_are_read_with_character_offsets(tmp_path):
    path = write(tmp_path / "a.jsonl")
    assert read_occurrences(path) == OCCURRENCES
    for occurrence in read_occurrences(path):
        span = occurrence.text[occurrence.start : occurrence.end]
        assert span == occurrence.word


ONE = {"word": "a", "sense": "b", "text": "c", "start": 0, "end": 1}


@pytest.mark.parametrize(
    "line, said",
    [
        (
            "no JSON",
            "a.jsonl:2: expected a JSON object with word, sense, text, start, end",
        ),
        (
            '{"word": "a", "sense": "b", "text": "c"}',
            "a.jsonl:2: expected a JSON object with word",
        ),
        (
            '{"word": "a", "sense": 3, "text": "c", "start": 0, "end": 1}',
            "a.jsonl:2: expected a JSON object with word",
        ),
        (
            '{"word": "a", "sense": "b", "text": "c", "start": 0, "end": 2}',
            "a.jsonl:2: found characters 0 to 2 of a text with 1",
        ),
        (
            '{"word": "a", "sense": "b", "text": "c", "start": 1, "end": 1}',
            "a.jsonl:2: found characters 1 to 1 of a text with 1",
        ),
        *(
            (
                json.dumps({**ONE, key: "c\ud800", "id": 2**70}),
                "a.jsonl:2: found half a character",
            )
            for key in ("word", "sense", "text")
        ),
    ],
)
def test_bad_lines_are_refused(source, tmp_path, line, said):
    path = write(tmp_path / "a.jsonl", OCCURRENCES[:1])
    path.write_text(path.read_text() + line + "\n")
    done = call("senses", source, path)
    assert done.exit_code == 1 and said in text(done)


def test_bad_files_and_options_are_refused(source, tmp_path):
    for path, options, said in [
        (tmp_path / "nowhere.jsonl", [], "nowhere.jsonl: cannot be read"),
        (write(tmp_path / "empty.jsonl", []), [], "found no occurrences"),
        (
            write(tmp_path / "one.jsonl", OCCURRENCES[:5]),
            [],
            "found one occurrence of 'ring'",
        ),
        (write(tmp_path / "a.jsonl"), ["--lang", "zz"], "found the language 'zz'"),
        (write(tmp_path / "b.jsonl"), ["--tokenizer", "x"], "which is not registered"),
    ]:
        done = call("senses", source, path, *options)
        assert done.exit_code == 1 and "Traceback" not in done.output
        assert said in text(done)
