"""`spacy elmo neighbors`: what is near a word in its context."""

import shutil
import sys

import numpy as np
import pytest
import spacy
from helpers.analysis import (
    cosines,
    make_bilm,
    random_sentences,
    read_json,
    save_vectors,
)
from helpers.command import call, text

from spacy_elmo.analysis import cosine_search as nearest_module
from spacy_elmo.analysis import nearest_contexts as neighbors_module
from spacy_elmo.analysis import token_index as index_module
from spacy_elmo.analysis.cosine_search import Approximate, nearest
from spacy_elmo.analysis.nearest_contexts import (
    Query,
    choose_layers,
    find_neighbors,
    make_query,
)
from spacy_elmo.analysis.token_index import build_index, index_key, open_index
from spacy_elmo.text.tokenizers import Tokenization

TOKENIZED = Tokenization("en", None, True)
NAMES = ["0", "1", "2", "mix"]


def write(path, sentences):
    path.write_text("".join(" ".join(words) + "\n" for words in sentences))
    return path


def make_index(bilm, folder, sentences):
    folder.mkdir(exist_ok=True)
    path = str(write(folder / "text.txt", sentences))
    key = index_key(bilm, path, TOKENIZED)
    return build_index(bilm, path, TOKENIZED, folder / "index", key)


# Search


@pytest.mark.parametrize("chunk", [3, 64, 10**6])
@pytest.mark.parametrize("k", [1, 5, 64, 100])
def test_nearest_are_those_of_all_rows(monkeypatch, chunk, k):
    monkeypatch.setattr(nearest_module, "CHUNK", chunk)
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (64, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = rng.normal(0, 3, (4, 8)).astype(np.float32)
    for query, (rows, found) in zip(
        queries, nearest(vectors.astype(np.float16), queries, k)
    ):
        expected = cosines(vectors, query)
        assert rows.tolist() == np.argsort(-expected)[:k].tolist()
        np.testing.assert_allclose(found, expected[rows], atol=1e-3)


def test_vectors_of_length_0_are_near_nothing():
    vectors = np.array([[0, 0], [1, 0]], dtype=np.float32)
    [(rows, found)] = nearest(vectors, np.array([[2.0, 0]], np.float32), 2)
    assert rows.tolist() == [1, 0] and found.tolist() == [1, 0]


def test_approximate_search_finds_most_and_is_kept(tmp_path):
    pytest.importorskip("usearch")
    rng = np.random.default_rng(0)
    vectors = rng.normal(0, 1, (2000, 16))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f2")
    queries = rng.normal(0, 1, (20, 16)).astype(np.float32)
    exact = nearest(vectors, queries, 10)
    stamps = []
    for _ in range(2):
        found = Approximate(tmp_path / "a.usearch", vectors).nearest(queries, 10)
        shared = [len({*a[0]} & {*b[0]}) for a, b in zip(found, exact)]
        assert np.mean(shared) > 9
        for (rows, similar), query in zip(found, queries):
            assert similar.tolist() == sorted(similar.tolist(), reverse=True)
            np.testing.assert_allclose(
                similar, cosines(vectors[rows], query), atol=1e-5
            )
        stamps.append((tmp_path / "a.usearch").stat().st_mtime_ns)
    assert stamps[0] == stamps[1]
    assert [p.name for p in tmp_path.iterdir()] == ["a.usearch"]


# The index


def test_index_has_all_tokens(bilm, tmp_path):
    sentences = random_sentences(30)
    index = make_index(bilm, tmp_path, sentences)
    layers = np.concatenate(bilm.embed(sentences), 1)
    layers = np.concatenate([layers, layers.mean(0, keepdims=True)])
    layers /= np.linalg.norm(layers, axis=2, keepdims=True)
    for number, name in enumerate(NAMES):
        np.testing.assert_allclose(index.layer(name), layers[number], atol=1e-3)
    row = 0
    for number, words in enumerate(sentences):
        assert index.sentence(number) == words
        for position, word in enumerate(words):
            assert index.place(row) == (number, position)
            assert index.words[index.tokens[row]] == word
            row += 1
    assert row == len(index.tokens)
    assert len(set(index.words)) == len(index.words)


def test_index_is_used_again_for_the_same_only(bilm, tmp_path):
    sentences = random_sentences(5)
    make_index(bilm, tmp_path, sentences)
    folder, path = tmp_path / "index", tmp_path / "text.txt"

    def reopen(bilm=bilm, text=path, tokenization=TOKENIZED):
        return open_index(folder, index_key(bilm, str(text), tokenization))

    assert reopen() is not None
    assert reopen(make_bilm()) is not None  # the same weights
    assert reopen(make_bilm(1)) is None
    assert reopen(tokenization=Tokenization("en")) is None
    assert reopen(tokenization=Tokenization("de", None, True)) is None
    other = shutil.copy(path, tmp_path / "elsewhere.txt")
    assert reopen(text=other) is not None
    write(path, [*sentences, ["more"]])
    assert reopen() is None
    bilm.precision = "int8"
    assert reopen(text=other) is None


@pytest.mark.parametrize("name", ["layer-1.float16", "tokens.npy", "words.json"])
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_index_is_not_used(bilm, tmp_path, name, damage):
    make_index(bilm, tmp_path, random_sentences(5))
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    assert open_index(tmp_path / "index", key) is not None
    broken = tmp_path / "index" / name
    data = broken.read_bytes()
    broken.unlink()
    if damage == "cut":
        broken.write_bytes(data[: len(data) // 2])
    assert open_index(tmp_path / "index", key) is None


def test_interrupted_build_leaves_what_was_there(bilm, tmp_path, monkeypatch):
    sentences = random_sentences(5)
    make_index(bilm, tmp_path, sentences)
    folder, path = tmp_path / "index", str(tmp_path / "text.txt")
    old = index_key(bilm, path, TOKENIZED)
    other = make_bilm(1)
    key = index_key(other, path, TOKENIZED)

    def interrupted(sentences, tokenization):
        yield from [["one"], ["two"]]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(index_module, "load_sentences", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_index(other, path, TOKENIZED, folder, key)
    assert open_index(folder, key) is None
    assert open_index(folder, old).sentence(0) == sentences[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index", "text.txt"]


def test_killed_build_is_not_taken_for_an_index(bilm, tmp_path):
    sentences = random_sentences(5)
    index = make_index(bilm, tmp_path, sentences)
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    # What a process leaves that is killed while it writes.
    (tmp_path / "index").rename(tmp_path / "index.part")
    (tmp_path / "index.part" / "index.json").unlink()
    (tmp_path / "index.part" / "leftover").write_text("")
    assert open_index(tmp_path / "index", key) is None
    index = make_index(bilm, tmp_path, sentences)
    assert index.sentence(4) == sentences[4]
    assert not (tmp_path / "index" / "leftover").exists()
    assert not (tmp_path / "index.part").exists()


def test_other_folders_are_left_alone(bilm, tmp_path):
    (tmp_path / "index").mkdir()
    make_index(bilm, tmp_path, random_sentences(5))  # an empty one may be used
    shutil.rmtree(tmp_path / "index")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match="found something that is no index"):
        make_index(bilm, tmp_path, random_sentences(5))
    assert (tmp_path / "index" / "thesis.txt").read_text() == "all of it"


# Neighbours


def slow_neighbors(bilm, sentences, query, layer, top):
    """Of all tokens, without an index."""
    vectors = bilm.embed([query.words])[0][:, query.position]
    target = vectors.mean(0) if layer == "mix" else vectors[layer]
    found = {}
    for words, layers in zip(sentences, bilm.embed(sentences)):
        table = layers.mean(0) if layer == "mix" else layers[layer]
        for position, cosine in enumerate(cosines(table, target)):
            if (words, position) != query:
                found[" ".join(words), position] = cosine
    return sorted(found.items(), key=lambda item: -item[1])[:top]


def test_neighbors_by_the_slow_way(bilm, tmp_path):
    sentences = random_sentences(60)
    index = make_index(bilm, tmp_path, sentences)
    queries = [Query(sentences[7], len(sentences[7]) - 1), Query(["new", "ban"], 0)]
    results = find_neighbors(bilm, index, queries, layers=NAMES, top=6)
    for query, result in zip(queries, results):
        assert result["word"] == query.words[query.position]
        assert result["sentence"] == " ".join(query.words)
        assert result["position"] == query.position
        assert [found["layer"] for found in result["layers"]] == [0, 1, 2, "mix"]
        for found in result["layers"]:
            expected = slow_neighbors(bilm, sentences, query, found["layer"], 6)
            similar = [item["cosine"] for item in found["neighbors"]]
            np.testing.assert_allclose(similar, [c for _, c in expected], atol=1e-3)
            for item in found["neighbors"]:
                assert item["sentence"].split(" ")[item["position"]] == item["word"]
            if found["layer"] != 0:  # which has as many ties as a word has occurrences
                names = [(n["sentence"], n["position"]) for n in found["neighbors"]]
                assert names == [name for name, _ in expected]


def test_query_is_left_out_and_what_is_repeated_counts_once(bilm, tmp_path):
    again = ["a", "bat", "flew", "at", "the", "bat"]
    text = [again] * 300 + [["a", "bat", "slept"]] * 50 + [["stones"]]
    index = make_index(bilm, tmp_path, text)
    [result] = find_neighbors(bilm, index, [Query(again, 1)], layers=["0"], top=30)
    [found] = result["layers"]
    names = [(n["sentence"], n["position"]) for n in found["neighbors"]]
    assert len(names) == len(set(names)) == 6 + 3 + 1 - 1  # all but the query
    assert (" ".join(again), 1) not in names
    assert set(names[:2]) == {(" ".join(again), 5), ("a bat slept", 1)}
    [result] = find_neighbors(bilm, index, [Query(again, 1)], layers=["2"], top=3)
    assert len(result["layers"][0]["neighbors"]) == 3


@pytest.mark.parametrize("words_at_a_time", [2, 10**6])
def test_words_beside_it_by_layer_0(bilm, tmp_path, monkeypatch, words_at_a_time):
    monkeypatch.setattr(neighbors_module, "WORDS", words_at_a_time)
    index = make_index(bilm, tmp_path, random_sentences(40))
    for word in ("ban", "unheard"):
        query = Query([word], 0)
        [result] = find_neighbors(bilm, index, [query], layers=["2"], top=5)
        others = sorted({*index.words} - {word})
        vectors = np.stack([bilm.embed([[other]])[0][0, 0] for other in others])
        expected = cosines(vectors, bilm.embed([[word]])[0][0, 0])
        order = np.argsort(-expected)[:5]
        assert [item["word"] for item in result["static"]] == [others[k] for k in order]
        similar = [item["cosine"] for item in result["static"]]
        np.testing.assert_allclose(similar, expected[order], atol=1e-3)


def test_words_beside_it_by_static_vectors(bilm, tmp_path):
    index = make_index(bilm, tmp_path, [["cat", "dog", "car", "new", "kitten"]])
    folder = save_vectors(
        tmp_path / "nlp",
        {"cat": [1, 0], "kitten": [3, 1], "dog": [2, 2], "car": [0, 5], "cats": [1, 0]},
    )
    vocab = spacy.load(folder).vocab
    queries = [Query(["the", "cat"], 1), Query(["new"], 0)]
    first, second = find_neighbors(bilm, index, queries, layers=["2"], static=vocab)
    # Of the text, with a vector, other than itself.
    assert [item["word"] for item in first["static"]] == ["kitten", "dog", "car"]
    similar = [item["cosine"] for item in first["static"]]
    np.testing.assert_allclose(similar, [3 / 10**0.5, 0.5**0.5, 0], atol=1e-6)
    assert second["static"] == []


def test_place_of_the_word_in_the_query():
    words = ["the", "bank", "of", "the", "bank"]
    assert make_query(words, "bank").position == 1
    assert make_query(words, "bank", 4).position == 4
    with pytest.raises(ValueError, match="not at position 2 .* it is at 1, 4"):
        make_query(words, "bank", 2)
    with pytest.raises(
        ValueError, match="'Bank' is not in the query; its words are: the"
    ):
        make_query(words, "Bank")


def test_layers_to_look_at():
    assert choose_layers(NAMES, None) == ["2"]
    assert choose_layers(NAMES, "all") == NAMES
    assert choose_layers(NAMES, "mix") == ["mix"]
    with pytest.raises(
        ValueError, match="--layer is '3'; expected 'all' or one of 0, 1"
    ):
        choose_layers(NAMES, "3")


# The command


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
    # Again, with what is there; then with a text that has changed.
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


def test_command_takes_the_place_of_a_word(source, path, tmp_path):
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
    queries.write_text("A ban, or [gel].\n\n  ban  gel [ban] ban\n", "utf-8-sig")
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
    assert results[0] == results[1]  # on so little text


def refusal(*args):
    done = call("neighbors", *args)
    assert done.exit_code == 1 and "Traceback" not in done.output
    return text(done)


def test_refusals(source, path, tmp_path, monkeypatch):
    args = [source, path, "--query", "A ban."]
    said = "'bat' is not in the query; its words are: A ban ."
    assert said in refusal(*args, "--word", "bat")
    said = "found 2 --query and 1 --word; expected one for each"
    assert said in refusal(*args, "--query", "A bat.", "--word", "ban")
    queries = tmp_path / "queries.txt"
    args = [source, path]
    assert "found no --query and no --query-file" in refusal(*args)
    args += ["--query-file", queries]
    for content, said in (
        ("A [ban]\nno word\n", "expected one word in brackets in line 2"),
        ("A [ban] or [gel]", "expected one word in brackets in line 1"),
        ("A ban[d]", "'d' is no word of the query; its words are: A band"),
        (" \n", "found no sentences; expected a query a line"),
    ):
        queries.write_text(content)
        assert said in refusal(*args)
    queries.write_bytes(b"caf\xe9 [x]")
    assert "found no UTF-8" in refusal(*args)
    args = [source, path, "--query", "A ban."]
    said = "found 1 --query and 2 --position"
    assert said in refusal(*args, "--word", "ban", "--position", 1, "--position", 2)
    assert "--layer is '7'" in refusal(*args, "--word", "ban", "--layer", 7)
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
