"""Test the options and the output of `spacy elmo neighbors`, and what it refuses."""

import sys
from functools import partial

import pytest
from helpers.analysis import random_sentences, read_json
from helpers.command import call, refused, text

refusal = partial(refused, "neighbors")


@pytest.fixture
def path(tmp_path):
    lines = [" ".join(words) + "." for words in random_sentences(20)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return tmp_path / "text.txt"


def test_command(source, path, tmp_path):
    out, folder = tmp_path / "out.json", tmp_path / "folder" / "index"
    args = [source, path, "--query", "A ban, or gel.", "--word", "gel", "--top", 3]
    args += ["--query", "ban ban", "--word", "ban", "--layer", "all", "--index", folder]
    done = call("neighbors", *args, "--output", out)
    assert done.exit_code == 0, done.output
    assert "Indexed" in done.output and "A ban , or [gel] ." in done.output
    data = read_json(out)
    assert data["kind"] == "neighbors" and data["title"] == "bilm: text.txt"
    first, second = data["queries"]
    assert (first["word"], first["position"]) == ("gel", 4)
    assert (second["word"], second["position"]) == ("ban", 0)
    for query in data["queries"]:
        assert [found["layer"] for found in query["layers"]] == [0, 1, 2, "mix"]
        assert all(len(found["neighbors"]) == 3 for found in query["layers"])
        assert len(query["static"]) == 3
    best = first["layers"][3]["neighbors"][0]
    words = best["sentence"].split(" ")
    words[best["position"]] = f"[{best['word']}]"
    assert f"{best['cosine']:.3f} {' '.join(words)}" in text(done)
    # The second call uses the same index, and the third one a changed text.
    done = call("neighbors", *args, "--output", tmp_path / "again.json")
    assert done.exit_code == 0 and "Indexed" not in done.output
    assert read_json(tmp_path / "again.json") == data
    path.write_text(path.read_text() + "\nA ban, or gel.\nThe gel.\n")
    done = call("neighbors", *args, "--output", tmp_path / "again.json")
    assert "Indexed" in done.output
    assert read_json(tmp_path / "again.json") != data
    assert [p.name for p in folder.parent.iterdir()] == ["index"]


def test_command_without_a_folder_leaves_nothing(source, path, tmp_path):
    before = sorted(tmp_path.iterdir())
    done = call("neighbors", source, path, "--query", "ban", "--word", "ban")
    assert done.exit_code == 0, done.output
    assert "layer 2" in done.output and "layer 1" not in done.output
    assert sorted(tmp_path.iterdir()) == before


def test_command_takes_the_position_of_a_word(source, path, tmp_path):
    out = tmp_path / "out.json"
    args = ["--query", "ban, gel ban", "--word", "ban", "--position", 2, "--tokenized"]
    done = call("neighbors", source, path, *args, "--output", out)
    assert done.exit_code == 0, done.output
    assert read_json(out)["queries"][0]["sentence"] == "ban, gel ban"
    assert read_json(out)["queries"][0]["position"] == 2


@pytest.mark.parametrize("tokenized", [False, True])
def test_command_reads_queries_from_a_file(source, path, tmp_path, tokenized):
    more = ["--tokenized"] if tokenized else []
    queries = tmp_path / "queries.txt"
    # A form feed does not end a line.
    queries.write_text("A \x0cban, or [gel].\n\n  ban  gel [ban] ban\n", "utf-8-sig")
    if tokenized:
        queries.write_text("A ban , or [gel] .\n  ban  gel [ban] ban\n")
    out = tmp_path / "out.json"
    args = ["--query", "ban ban", "--word", "ban", *more, "--output", out]
    args += ["--title", "Near_a_word"]
    done = call("neighbors", source, path, "--query-file", queries, *args)
    assert done.exit_code == 0, done.output
    data = read_json(out)
    assert data["title"] == "Near a word"
    found = [(query["sentence"], query["position"]) for query in data["queries"]]
    asked = [("A ban , or gel .", 4), ("ban gel ban ban", 2)]
    assert found == [("ban ban", 0), *asked]
    done = call("neighbors", source, path, "--query-file", queries, *more, "-o", out)
    assert done.exit_code == 0, done.output
    assert [(q["sentence"], q["position"]) for q in read_json(out)["queries"]] == asked


def test_command_searches_approximately(source, path, tmp_path):
    pytest.importorskip("usearch")
    results = []
    for option in ([], ["--approximate"]):
        out = tmp_path / "out.json"
        args = ["--query", "gel ban", "--word", "ban", "--index", tmp_path / "index"]
        done = call("neighbors", source, path, *args, *option, "--output", out)
        assert done.exit_code == 0, done.output
        results.append(read_json(out))
    assert (tmp_path / "index" / "layer-2.usearch").exists()
    assert results[0] == results[1]  # nothing is missed in so little text


def test_bad_files_and_options_are_refused(source, path, tmp_path, monkeypatch):
    args = [source, path, "--query", "A ban."]
    said = "found no 'bat' in the query; expected one of its words: A ban ."
    assert said in refusal(*args, "--word", "bat")
    said = "found 2 --query and 1 --word; expected one for each"
    assert said in refusal(*args, "--query", "A bat.", "--word", "ban")
    queries = tmp_path / "queries.txt"
    args = [source, path]
    assert "found no --query and no --query-file" in refusal(*args)
    args += ["--query-file", queries]
    for content, said in (
        ("A [ban]\nno word\n", "queries.txt:2: expected exactly one word in brackets"),
        ("A [ban] or [gel]", "queries.txt:1: expected exactly one word in brackets"),
        ("A ban[d]", "found 'd' in brackets; expected one of the words"),
        (" \n", "found no queries; expected one per line"),
    ):
        queries.write_text(content)
        assert said in refusal(*args)
    queries.write_bytes(b"caf\xe9 [x]")
    assert "this is not UTF-8" in refusal(*args)
    found = refusal(source, path, "--query", "A ban\udcff.", "--word", "ban")
    assert "found half a character in 'A ban\\udcff.'; expected valid Unicode" in found
    args = [source, path, "--query", "A ban."]
    said = "found 1 --query and 2 --position"
    assert said in refusal(*args, "--word", "ban", "--position", 1, "--position", 2)
    assert "found --layer 7" in refusal(*args, "--word", "ban", "--layer", 7)
    (tmp_path / "empty.txt").write_text(" \n")
    found = refusal(source, tmp_path / "empty.txt", *args[2:], "--word", "ban")
    assert "empty.txt: found no sentences" in found
    found = refusal(source, tmp_path / "nowhere.txt", *args[2:], "--word", "ban")
    assert "nowhere.txt: no such file" in found
    found = refusal(*args, "--word", "ban", "--static", tmp_path / "nowhere")
    assert "cannot be loaded as a pipeline" in found
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    found = refusal(*args, "--word", "ban", "--approximate")
    assert "needs usearch: pip install 'spacy-elmo[neighbors]'" in found
