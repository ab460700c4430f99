"""Test how `spacy elmo probe` measures how well each layer predicts tags."""

from functools import partial

import numpy as np
import pytest
import spacy
from helpers.analysis import (
    make_bilm,
    random_sentences,
    read_json,
    rows_of,
    save_vectors,
)
from helpers.command import call, refused, text

from spacy_elmo.analysis import layer_vectors
from spacy_elmo.analysis.tag_probe import (
    EmbeddedTokens,
    get_layer,
    get_mix,
    probe_tags,
)
from spacy_elmo.analysis.tagged_sentences import TaggedSentence

refusal = partial(refused, "probe")


def tagged(sentences, tag):
    """Tag each word of sentences.

    tag (Callable): Returns the tag of a word, given its sentence and its position.
    """
    return [
        TaggedSentence(
            words, {"pos": [tag(words, place) for place in range(len(words))]}
        )
        for words in sentences
    ]


@pytest.mark.parametrize("batch", [1, 10, 10**6])
def test_vectors_are_those_of_the_bilm(bilm, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(layer_vectors, "BATCH_TOKENS", batch)
    sentences = tagged(random_sentences(9), lambda words, place: "X")
    progress = []
    tokens = EmbeddedTokens(bilm, sentences, tmp_path, progress.append)
    expected = np.concatenate(bilm.embed([s.words for s in sentences]), 1)
    assert tokens.words == [word for s in sentences for word in s.words]
    assert sum(progress) == len(tokens.words)
    assert len(progress) == {1: 9, 10**6: 1}.get(batch, len(progress))
    for name in ("0", "1", "2"):
        found = get_layer(name, tokens)
        np.testing.assert_allclose(found, expected[int(name)], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(get_mix(tokens), expected.mean(0), rtol=2e-3, atol=2e-3)


def test_only_layers_with_context_know_the_next_word(quick):
    """Tag words in two ways: by the first letter of the next word, or by their own
    first letter. In the second case, the first word of a sentence has no tag."""

    def by_next(words, place):
        return words[place + 1][0] if place + 1 < len(words) else "-"

    def by_itself(words, place):
        return words[place][0] if place else ""

    bilm = make_bilm(projection_dim=24)
    results = []
    for tag in (by_next, by_itself):
        train = tagged(random_sentences(250, seed=1), tag)
        dev = tagged(random_sentences(60, seed=2), tag)
        [result] = probe_tags(bilm, train, dev)
        results.append(rows_of(result))
    above, itself = results
    assert above["layer 1"] > above["layer 0"] + 0.3
    assert above["layer 0"] < above["most frequent tag"] + 0.1
    assert itself["most frequent tag"] == 1
    assert itself["layer 0"] > 0.99


def test_most_frequent_tag_and_its_counts(quick):
    train = [
        TaggedSentence(["a", "a", "a", "b", "c"], {"pos": ["X", "Y", "Y", "X", ""]})
    ]
    train += [TaggedSentence(["d", "e"], {"pos": ["Y", "Y"]})]
    dev = [
        TaggedSentence(["a", "b", "c", "new", "a"], {"pos": ["Y", "X", "Y", "Y", ""]})
    ]
    [result] = probe_tags(make_bilm(), train, dev)
    assert result["train"] == 6 and result["dev"] == 4
    assert rows_of(result)["most frequent tag"] == 1  # "c" and "new" get the majority
    dev = [TaggedSentence(["a", "b", "d"], {"pos": ["other"] * 3})]
    [result] = probe_tags(make_bilm(), train, dev)
    assert set(rows_of(result).values()) == {0}  # TRAIN has no such tag


def test_static_vectors_without_context(tmp_path, quick):
    """Give each word a vector in a separate direction, so that a linear classifier can
    learn the most frequent tag of each word."""
    rng = np.random.default_rng(0)
    sentences = random_sentences(150, n_words=6)
    favourite = {
        word: "XYZ"[k % 3] for k, word in enumerate(sorted({*sum(sentences, [])}))
    }

    def tag(words, place):
        return (
            favourite[words[place]] if rng.random() < 0.7 else str(rng.choice([*"XYZ"]))
        )

    folder = save_vectors(
        tmp_path / "nlp", dict(zip(favourite, np.eye(len(favourite)).tolist()))
    )
    [result] = probe_tags(
        make_bilm(),
        tagged(sentences, tag),
        tagged(random_sentences(50, seed=1, n_words=6), tag),
        static=spacy.load(folder).vocab,
    )
    rows = rows_of(result)
    assert list(rows)[:2] == ["most frequent tag", "static vectors"]
    assert rows["static vectors"] == rows["most frequent tag"] < 0.9


def write_conllu(path, sentences):
    lines = []
    for words in sentences:
        for number, word in enumerate(words, 1):
            tags = [word[0].upper(), word[-1], f"Odd={number % 2}"]
            lines.append("\t".join([str(number), word, "_", *tags, *"____"]))
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    return [
        write_conllu(tmp_path / f"{name}.conllu", random_sentences(n, seed=n))
        for name, n in (("train", 40), ("dev", 12))
    ]


def test_command_for_tags(source, files, tmp_path, quick):
    names = ["most frequent tag", "layer 0", "layer 1", "layer 2", "mix"]
    args = ["probe", source, *files, "--attr", "pos", "--attr", "morph", "--output"]
    done = call(*args, tmp_path / "new" / "a.json")
    assert done.exit_code == 0, done.output
    data = read_json(tmp_path / "new" / "a.json")
    assert data["kind"] == "probe" and data["bilm"] == str(source)
    assert data["title"] == "bilm: train.conllu"
    assert [task["task"] for task in data["tasks"]] == ["pos", "morph"]
    for task in data["tasks"]:
        assert [row["name"] for row in task["rows"]] == names
        assert [row["layer"] for row in task["rows"]] == [None, 0, 1, 2, "mix"]
        assert task["dev"] == sum(map(len, random_sentences(12, seed=12)))
        best = max(task["rows"], key=lambda row: row["accuracy"])
        assert f"{best['name']} {best['accuracy']:.2%} best" in text(done)
    assert call(*args, tmp_path / "b.json", "--title", "Tags").exit_code == 0
    again = read_json(tmp_path / "b.json")
    assert again["title"] == "Tags" and again["tasks"] == data["tasks"]


def test_command_reads_at_most_limit_sentences(source, files, tmp_path, quick):
    out = tmp_path / "a.json"
    assert call("probe", source, *files, "--limit", 10, "-o", out).exit_code == 0
    [task] = read_json(out)["tasks"]
    for part, n in (("train", 40), ("dev", 12)):
        assert task[part] == sum(map(len, random_sentences(n, seed=n)[:10]))


def test_bad_files_are_refused(source, files, tmp_path):
    train, dev = files
    said = "found no DEV other than TRAIN"
    for args in ([train], [train, "-"], [train, train]):
        assert said in refusal(source, *args)
    assert "nowhere: no such file" in refusal(source, tmp_path / "nowhere", dev)
    assert call("probe", source, train, dev, "--seed", -1).exit_code == 2
    assert "no such file or folder" in refusal(tmp_path / "nowhere", train, dev)
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tword\n")
    assert "bad.conllu:1: found 2 columns" in refusal(source, bad, dev)
    bad.write_text("\n".join(line.replace("\tOdd=0", "\tOdd=1") for line in dev.open()))
    said = "found 'Odd=1' as the morph of all words in TRAIN"
    assert said in refusal(source, bad, dev, "--attr", "morph")
    bad.write_text("1\tword\t_\t_\t_\t_\t_\t_\t_\t_\n")
    assert "found no words with a pos in DEV" in refusal(source, train, bad)
    bad.write_bytes(b"1\t\xff\xfe\n")
    assert "bad.conllu:1: this is not UTF-8" in refusal(source, bad, dev)
    (tmp_path / "bad.spacy").write_bytes(b"no docs")
    assert "cannot be read as a .spacy" in refusal(source, tmp_path / "bad.spacy", dev)
    args = (source, train, dev, "--static")
    assert "cannot be loaded as a pipeline" in refusal(*args, tmp_path / "nowhere")
    spacy.blank("en").to_disk(tmp_path / "bare")
    assert "bare: found no word vectors" in refusal(*args, tmp_path / "bare")
