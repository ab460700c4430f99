"""Test how `spacy elmo probe` measures how well each layer predicts senses."""

from collections import Counter, defaultdict
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
import spacy
from helpers.analysis import (
    cosines,
    random_sentences,
    read_json,
    save_vectors,
)
from helpers.command import call, refused

from spacy_elmo.analysis import layer_vectors
from spacy_elmo.analysis.sense_probe import probe_senses
from spacy_elmo.analysis.wsd_files import default_key_path, read_keys, read_wsd

FORMS = ["bank", "banks", "play_out", "play out", "runs"]

refusal = partial(refused, "probe")


def write_wsd(path, n_texts, *, seed=0, lemmas=("bank", "play", "run"), first=0):
    """Write random sentences in which some words have one or two senses."""
    rng = np.random.default_rng(seed)
    corpus, keys = ElementTree.Element("corpus", lang="en"), []
    for number in range(first, first + n_texts):
        document = ElementTree.SubElement(corpus, "text", id=f"d{number}")
        for place, words in enumerate(random_sentences(6, seed=1000 + number)):
            name = f"d{number}.s{place}"
            sentence = ElementTree.SubElement(document, "sentence", id=name)
            for word in words:
                if rng.random() < 0.5:
                    ElementTree.SubElement(
                        sentence, "wf", lemma=word, pos="X"
                    ).text = word
                    continue
                lemma, pos = str(rng.choice(lemmas)), str(rng.choice(["NOUN", "VERB"]))
                instance = ElementTree.SubElement(
                    sentence, "instance", lemma=lemma, pos=pos
                )
                instance.set("id", f"{name}.t{len(keys)}")
                instance.text = str(rng.choice(FORMS))
                senses = rng.choice([1, 1, 1, 2, 3], 1 + (rng.random() < 0.2))
                senses = [f"{lemma}%{pos}:{sense}" for sense in senses]
                keys.append(" ".join([instance.get("id"), *dict.fromkeys(senses)]))
    ElementTree.ElementTree(corpus).write(path, encoding="utf-8", xml_declaration=True)
    default_key_path(path).write_text("\n".join(keys) + "\n")
    return path


def test_sentences_and_keys(tmp_path):
    path = tmp_path / "a.data.xml"
    path.write_text(
        "<corpus><text id='d0'><sentence id='d0.s0'><wf lemma='the' pos='DT'>The</wf>"
        "<instance id='d0.s0.t0' lemma='grand_jury' pos='NOUN'>Grand_Jury of_A"
        "</instance><wf lemma='_' pos='X'>_</wf><wf lemma='' pos='X'></wf>"
        "<instance id='d0.s0.t1' lemma='say' pos='VERB'>said</instance></sentence>"
        "</text><text><sentence/><sentence><wf>눈</wf></sentence></text></corpus>"
    )
    first, empty, last = read_wsd(path)
    assert first.words == ["The", "Grand", "Jury", "of", "A", "_", "said"]
    assert first.instances == [
        ("d0.s0.t0", "grand_jury", "NOUN", 1, 5),
        ("d0.s0.t1", "say", "VERB", 6, 7),
    ]
    assert empty == ([], []) and last == (["눈"], [])
    assert list(read_wsd(path, limit=1)) == [first]
    assert list(read_wsd(path, is_wanted=lambda number: number == 1)) == [empty, last]
    key = tmp_path / "a.gold.key.txt"
    key.write_text("d0.s0.t0 jury%1\n\nd0.s0.t1 say%1 say%2\n")
    assert default_key_path(path) == key
    keys = {"d0.s0.t0": ("jury%1",), "d0.s0.t1": ("say%1", "say%2")}
    assert read_keys(key) == keys
    key.write_text("\ufeff" + key.read_text())  # as some editors save it
    assert read_keys(key) == keys


def test_xml_that_cannot_be_decoded_is_named(tmp_path):
    path = tmp_path / "a.data.xml"
    path.write_bytes(b'<?xml version="1.0" encoding="euc-kr"?><corpus/>')
    with pytest.raises(ValueError, match=f"^{path}: multi-byte encodings are not"):
        list(read_wsd(path))


def reference(bilm, train, dev, layer):
    """Predict senses in a simple way, from lists of all vectors.

    RETURNS: How many most frequent senses are correct, how many nearest senses are
        correct, and how many instances have a lemma that is not in the training data.
    """

    def read(path):
        keys = dict(line.split(" ", 1) for line in default_key_path(path).open())
        for element in ElementTree.parse(path).iter("sentence"):
            forms = [child.text.replace("_", " ").split() for child in element]
            layers = bilm.embed([sum(forms, [])])[0] if forms else None
            for number, child in enumerate(element):
                if child.tag == "instance":
                    begin = len(sum(forms[:number], []))
                    rows = layers[:, begin : begin + len(forms[number])]
                    vectors = rows.mean(0) if layer == "mix" else rows[layer]
                    yield child, keys[child.get("id")].split(), vectors.mean(0)

    seen = defaultdict(lambda: defaultdict(list))
    for child, senses, vector in read(train):
        for sense in senses:
            seen[child.get("lemma"), child.get("pos")][sense].append(vector)
    frequent = near = new = 0
    for child, senses, vector in read(dev):
        known = seen.get((child.get("lemma"), child.get("pos")), {})
        if not known:
            new += 1
            continue
        counts = Counter({sense: len(found) for sense, found in known.items()})
        frequent += counts.most_common(1)[0][0] in senses
        names = [sense for sense, _ in counts.most_common()]
        means = np.stack([np.mean(known[sense], 0) for sense in names])
        near += names[cosines(means, vector).argmax()] in senses
    return frequent, near, new


@pytest.mark.parametrize("batch", [20, 10**6])
@pytest.mark.slow
def test_accuracies_agree_with_the_simple_way(bilm, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(layer_vectors, "BATCH_TOKENS", batch)
    train = write_wsd(tmp_path / "train.data.xml", 8)
    dev = write_wsd(
        tmp_path / "dev.data.xml", 5, seed=1, lemmas=("bank", "play", "new"), first=8
    )
    keys = [read_keys(default_key_path(path)) for path in (train, dev)]
    found = probe_senses(bilm, read_wsd(train), read_wsd(dev), *keys)
    assert found["train"] == len(keys[0]) and found["dev"] == len(keys[1])
    accuracies = set()
    for row in found["rows"][2:]:  # not layer 0, where senses are equally near
        frequent, near, new = reference(bilm, train, dev, row["layer"])
        assert row["accuracy"] == near / found["dev"]
        accuracies.add(row["accuracy"])
    assert found["rows"][0]["accuracy"] == frequent / found["dev"]
    assert found["unseen"] == new > 0
    assert len(accuracies) > 1  # otherwise the comparison would show little
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["most frequent sense", "layer 0 (without context)"]
    assert names[2:] == ["layer 1", "layer 2", "mix"]


def hold_out(path, parts):
    """Split a file into two in the same way as the command does without DEV."""
    for target, held_out in zip(parts, (False, True)):
        tree = ElementTree.parse(path)
        for number, document in enumerate(tree.getroot().findall("text")):
            if (number in (9, 19)) != held_out:
                tree.getroot().remove(document)
        tree.write(target)
        default_key_path(target).write_text(default_key_path(path).read_text())
    return parts


class Static:
    """Word vectors with the interface of a biLM."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed(self, sentences):
        words = [self.vectors.get(word, [0.0] * 5) for word in sentences[0]]
        return [np.array([words], dtype=np.float32)]


def test_static_vectors_agree_with_the_simple_way(source, tmp_path):
    rng = np.random.default_rng(0)
    words = ["bank", "banks", "play", "out", "runs"]
    vectors = {word: rng.normal(size=5).tolist() for word in words}
    static = save_vectors(tmp_path / "static", vectors)
    path, out = write_wsd(tmp_path / "all.data.xml", 21), tmp_path / "out.json"
    args = ["probe", source, path, "--output", out]
    assert call(*args).exit_code == 0
    [without] = read_json(out)["tasks"]
    done = call(*args, "--static", static)
    assert done.exit_code == 0, done.output
    [found] = read_json(out)["tasks"]
    row = found["rows"].pop(1)
    assert found == without
    assert row["name"] == "static vectors" and row["layer"] is None
    parts = hold_out(path, [tmp_path / f"{name}.data.xml" for name in "ab"])
    frequent, near, _ = reference(Static(vectors), *parts, 0)
    assert near != frequent
    assert row["accuracy"] == pytest.approx(near / found["dev"])


def test_static_vectors_fall_back_on_the_most_frequent_sense(bilm, tmp_path):
    static = save_vectors(tmp_path, {"bank": [1.0, 0.2], "banks": [0.1, 1.0]})
    train = {"t0": ("river", "banks"), "t1": ("money", "bank"), "t2": ("money", "bank")}
    dev = {"d0": ("river", "banks"), "d1": ("money", "bank"), "d2": ("money", "novel")}
    rows, _ = small(bilm, train, dev, static=spacy.load(static).vocab)
    assert rows[:2] == [2 / 3, 1.0]


def one_sentence(form, name, pos="NOUN", lemma="bank"):
    return ["We", form, name], [(name, lemma, pos, 1, 2)]


def small(bilm, train, dev, **options):
    """Probe sentences with one instance each.

    train, dev (dict): For each id, a tuple of the senses, the form and, optionally, the
        part of speech and the lemma.
    """
    from spacy_elmo.analysis.wsd_files import Instance, SenseSentence

    parts = []
    for part in (train, dev):
        sentences = []
        for name, (_, *more) in part.items():
            words, instances = one_sentence(more[0], name, *more[1:])
            sentences.append(SenseSentence(words, [Instance(*i) for i in instances]))
        parts.append(sentences)
    keys = [
        {name: tuple(v[0].split()) for name, v in part.items()} for part in (train, dev)
    ]
    result = probe_senses(bilm, *parts, *keys, **options)
    return [row["accuracy"] for row in result["rows"]], result["unseen"]


def test_layer_0_falls_back_on_the_most_frequent_sense(bilm):
    train, dev = {}, {}
    for count in range(2, 40):  # so that sums are rounded in different ways
        word = f"bank{count}"
        for number in range(count):
            sense = "rare" if number == 0 else "usual"
            train[f"t{count}-{number}"] = (sense, word, "NOUN", word)
        dev[f"d{count}"] = ("rare" if count == 2 else "usual", word, "NOUN", word)
    rows, _ = small(bilm, train, dev)
    assert rows[0] == rows[1] == 1


def test_senses_of_another_part_of_speech_are_not_chosen(bilm):
    train = {"t0": ("noun", "bank"), "t1": ("verb", "bank", "VERB")}
    rows, unseen = small(bilm, train, {"d0": ("verb", "bank", "VERB")})
    assert set(rows) == {1} and unseen == 0
    rows, unseen = small(bilm, train, {"d0": ("noun", "bank", "ADJ")})
    assert set(rows) == {1} and unseen == 0  # the lemma's first sense
    rows, unseen = small(bilm, train, {"d0": ("noun", "x", "NOUN", "new")})
    assert set(rows) == {0} and unseen == 1


def test_any_of_several_senses_is_correct(bilm):
    rows, _ = small(bilm, {"t0": ("a", "bank")}, {"d0": ("b a", "bank")})
    assert set(rows) == {1}


def test_command_holds_out_every_tenth_text(source, tmp_path):
    path = write_wsd(tmp_path / "all.data.xml", 21)
    parts = hold_out(path, [tmp_path / "train.xml", tmp_path / "dev.xml"])
    key = default_key_path(path)
    results = []
    for args in (
        [path],
        [path, "-"],
        [path, path, "--task", "senses"],
        [*parts, "--key-train", key, "--key-dev", key],
    ):
        out = tmp_path / "out.json"
        done = call("probe", source, *args, "--output", out)
        assert done.exit_code == 0, done.output
        results.append(read_json(out)["tasks"])
    assert results[0][0]["task"] == "senses" and results[0][0]["dev"] > 10
    assert all(tasks == results[0] for tasks in results[1:])


def test_bad_files_are_refused(source, tmp_path):
    path = write_wsd(tmp_path / "a.data.xml", 3)
    assert "found no instance of DEV" in refusal(source, path)
    assert "nowhere.xml" in refusal(
        source, tmp_path / "nowhere.xml", "--key-train", path
    )
    key = default_key_path(path)
    other = tmp_path / "key.txt"
    other.write_text("d77.s0.t0 sense\n")
    said = "found no instance of TRAIN in its key file"
    assert said in refusal(source, path, "--key-train", other)
    other.write_text("d77.s0.t0\n")
    assert "key.txt:1: found no sense" in refusal(source, path, "--key-train", other)
    missing = tmp_path / "none.txt"
    assert "none.txt: no such file" in refusal(source, path, "--key-train", missing)
    bad = tmp_path / "bad.xml"
    bad.write_text("<corpus><text>")
    assert "this is not XML" in refusal(source, bad, "--key-train", key)
    bad.write_text(
        "<corpus><sentence id='s'><instance id='x' pos='X'>y</instance></sentence>"
        "</corpus>"
    )
    assert "without id, lemma, pos" in refusal(source, bad, "--key-train", key)


LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10)
)


@pytest.mark.parametrize(
    "entity",
    [LAUGHS, '<!ENTITY x SYSTEM "file:///etc/passwd">', '<!ENTITY x "y">'],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path, entity, encoding):
    path = tmp_path / "a.data.xml"
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE corpus [{entity}]>'
        "<corpus><text><sentence><wf>&x;&l9;</wf></sentence></text></corpus>"
    )
    path.write_bytes(text.encode(encoding))
    with pytest.raises(ValueError, match="found a definition of the entity"):
        list(read_wsd(path))


def test_default_values_of_attributes_are_refused(tmp_path):
    path = tmp_path / "a.data.xml"
    text = (
        "<!DOCTYPE corpus [<!ATTLIST wf z CDATA {}>]>"
        "<corpus><text><sentence><wf>a</wf></sentence></text></corpus>"
    )
    path.write_text(text.format("#IMPLIED"))
    assert len(list(read_wsd(path))) == 1
    path.write_text(text.format('"b"'))
    with pytest.raises(ValueError, match="found a default value of the attribute 'z'"):
        list(read_wsd(path))
