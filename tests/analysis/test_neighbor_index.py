"""Test spacy_elmo.Neighbors, which does in Python what `spacy elmo neighbors` does."""

import pytest
from helpers.analysis import make_bilm, random_sentences, read_json
from helpers.command import call

from spacy_elmo import Neighbors

QUERY = "A ban, or gel."


@pytest.fixture
def path(tmp_path):
    lines = [" ".join(words) + "." for words in random_sentences(20)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return tmp_path / "text.txt"


@pytest.mark.parametrize("layer", [None, 0, "mix"])
def test_it_finds_what_the_command_finds(source, path, tmp_path, layer):
    out, folder = tmp_path / "out.json", tmp_path / "index"
    args = ["--query", QUERY, "--word", "gel", "--top", 3, "--output", out]
    args += [] if layer is None else ["--layer", layer]
    assert call("neighbors", source, path, *args).exit_code == 0
    expected = read_json(out)["queries"][0]["layers"][0]["neighbors"]
    built = Neighbors.build(source, path, folder)
    for neighbors in (built, Neighbors.open(source, folder)):
        found = neighbors.ask(QUERY, "gel", layer=layer, top=3)
        assert [item._asdict() for item in found] == [
            {**item, "cosine": pytest.approx(item["cosine"])} for item in expected
        ]


def test_a_second_build_uses_the_first_one(bilm, path, tmp_path):
    first = Neighbors.build(bilm, path, tmp_path / "index")
    made = (tmp_path / "index" / "tokens.npy").stat().st_mtime_ns
    assert len(first) == len(Neighbors.build(bilm, path, tmp_path / "index"))
    assert (tmp_path / "index" / "tokens.npy").stat().st_mtime_ns == made
    assert repr(first) == f"<Neighbors: {len(first)} words in {tmp_path / 'index'}>"


def test_tokenized_text(bilm, tmp_path):
    (tmp_path / "text.txt").write_text("don't stop\na can't b\n")
    built = Neighbors.build(
        bilm, tmp_path / "text.txt", tmp_path / "index", tokenized=True
    )
    assert len(built) == 5
    opened = Neighbors.open(bilm, tmp_path / "index")
    assert opened.ask("I can't", "can't", top=1)[0].word in "don't stop a can't b"


def test_bad_input_gets_a_sentence(bilm, path, tmp_path):
    folder = tmp_path / "index"
    neighbors = Neighbors.build(bilm, path, folder)
    cases = [
        (lambda: Neighbors.open(bilm, tmp_path), "found no complete index"),
        (lambda: Neighbors.open(make_bilm(1), folder), "the index of another biLM"),
        (lambda: neighbors.ask(QUERY, "gone"), "found no 'gone' in the query"),
        (lambda: neighbors.ask(QUERY, "gel", layer=3), "layer is 3; expected one of"),
        (lambda: neighbors.ask(QUERY, "gel", layer="all"), "layer is 'all'"),
        (lambda: neighbors.ask(QUERY, "gel", top=0), "top is 0; expected 1 or more"),
    ]
    for call_it, message in cases:
        with pytest.raises(ValueError, match=message):
            call_it()
    (folder / "layer-1.float16").write_bytes(b"")
    with pytest.raises(ValueError, match="found no complete index"):
        Neighbors.open(bilm, folder)
