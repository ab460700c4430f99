"""Test which files `spacy elmo prepare` writes, and which data it refuses."""

import pytest
import spacy
from helpers.command import call, refused
from helpers.gold import TREE, TREES, write_files
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus

from spacy_elmo.files import one_writer


def test_docs_of_spacy_files_stay_unchanged(tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp(f"Ann ran {i}.") for i in range(3)]
    for doc in docs:
        doc.ents = [Span(doc, 0, 1, label="PERSON")]
        doc.cats = {"x": 0.25}
        doc.user_data["from"] = "here"
    for split in ("train", "dev"):
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{split}.spacy")
    done = call("prepare", tmp_path, tmp_path / "out", "--spans-key", "sc")
    assert done.exit_code == 0, done.output
    store = DocBin(store_user_data=True).from_disk(tmp_path / "out" / "train.spacy")
    for old, new in zip(docs, store.get_docs(nlp.vocab)):
        assert new.text == old.text and new.cats == old.cats
        assert [ent.label_ for ent in new.ents] == ["PERSON"]
        assert [span.text for span in new.spans["sc"]] == ["Ann"]
        assert new.user_data["from"] == "here"


def test_an_old_test_file_is_refused_and_kept(tmp_path):
    content = TREE.format("Ann")
    files = {f"{split}.conllu": content for split in ("train", "dev", "test")}
    output = tmp_path / "output"
    assert call("prepare", write_files(tmp_path / "one", files), output).exit_code == 0
    before = (output / "test.spacy").read_bytes()
    del files["test.conllu"]
    two = write_files(tmp_path / "two", files)
    assert "found a test file, but none among the gold" in refused(
        "prepare", two, output
    )
    assert (output / "test.spacy").read_bytes() == before
    (output / "test.spacy").unlink()
    assert call("prepare", two, output).exit_code == 0


def test_gold_data_is_never_overwritten(tmp_path):
    source = write_files(tmp_path / "one", {"train.conllu": TREES, "dev.conllu": TREES})
    assert call("prepare", source, tmp_path / "out").exit_code == 0
    gold = tmp_path / "out" / "train.spacy"
    before = gold.read_bytes()
    for args in ([tmp_path / "out"], ["--train", gold, "--limit", 1]):
        assert "is read and would be overwritten" in refused(
            "prepare", *args, tmp_path / "out"
        )
    assert gold.read_bytes() == before


def test_a_file_that_is_used_twice_is_named(tmp_path):
    source = write_files(tmp_path / "one", {"train.conllu": TREES, "dev.conllu": TREES})
    said = call("prepare", source, tmp_path / "apart").output
    assert "is given for" not in said
    dev = source / ".." / "one" / "dev.conllu"
    done = call("prepare", source, "--test", dev, tmp_path / "twice")
    assert done.exit_code == 0
    assert "is given for dev and for test" in " ".join(done.output.split())


def test_one_writer_at_a_time(tmp_path):
    source = write_files(tmp_path / "one", {"train.conllu": TREES, "dev.conllu": TREES})
    (tmp_path / "out").mkdir()
    with one_writer(tmp_path / "out"):
        assert "is writing it" in refused("prepare", source, tmp_path / "out")
    assert call("prepare", source, tmp_path / "out").exit_code == 0


def test_spacy_train_can_use_the_files(tmp_path):
    """Check tags, entities and heads after alignment with spaCy's own tokenizer."""
    source = write_files(
        tmp_path / "source", {"train.conllu": TREES, "dev.conllu": TREES}
    )
    output = tmp_path / "output"
    assert call("prepare", source, output, "--lang", "en").exit_code == 0
    nlp = spacy.blank("en")
    (example,) = Corpus(output / "train.spacy")(nlp)
    predicted: Doc = example.predicted
    assert [token.text for token in predicted[:7]] == "I do n't see Ann Lee .".split()
    assert example.get_aligned("TAG", as_string=True)[:2] == ["PRP", "VBP"]
    assert example.get_aligned_ner()[4:6] == ["B-PERSON", "L-PERSON"]
    heads, labels = example.get_aligned_parse(projectivize=False)
    assert heads[:7] == [3, 3, 3, 3, 3, 4, 3] and labels[3] == "ROOT"


ANN = TREE.format("Ann")
A = [[0, 1, "X"]]
HALF = '{"text": "a", %s}\n'
RANGE = "4-5\tx" + "\t_" * 8 + "\n"


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, "found no gold data in this folder"),
        ({"README.md": "x"}, "found no gold data in this folder"),
        ({"dev.conllu": ANN}, "found no file to train on"),
        ({"train.conllu": ""}, "train.conllu: found no gold data; expected"),
        ({"train.conllu": ANN + "1\tx\n"}, "train.conllu:5: found 2 columns"),
        ({"train.conllu": ANN.replace("2\truns", "3\truns")}, ":2: found ID 3"),
        ({"train.conllu": ANN.replace("0\troot", "9\troot")}, ":2: found HEAD '9'"),
        ({"train.conllu": ANN.replace("0\troot", "_\troot")}, ":2: found HEAD '_'"),
        ({"train.conllu": ANN.replace("\t0\troot", "\t1\tdep")}, ":1: found 0 words"),
        ({"train.conllu": ANN.replace("\t2\tnsubj", "\t3\tnsubj").replace(
            "\t2\tpunct", "\t1\tpunct")}, ":1: found heads that form a cycle"),
        ({"train.conllu": ANN.replace("NOUN", "NAUN")}, ":1: spaCy cannot convert"),
        ({"train.conllu": ANN.replace("=Sing", "")}, ":1: found FEATS 'Number'"),
        ({"train.conllu": RANGE + ANN}, ":1: found the range 4-5"),
        ({"train.conll": "a\tO\nb\tO\tO\n"}, "train.conll:2: found 3 columns"),
        ({"train.conll": "a O\n\nb\n"}, "train.conll:3: found 1 columns"),
        ({"train.conll": "a\tO\nb\t\n"}, "train.conll:2: found 2 columns"),
        ({"train.conll": "a\tO\nb\tPERSON\n"}, ":2: found the tag 'PERSON'"),
        ({"train.jsonl": "{}\n"}, "train.jsonl:1: found no text"),
        ({"train.jsonl": '\n{"text"\n'}, "train.jsonl:2: this is not JSON"),
        ({"train.jsonl": [{"text": "a"}]}, ":1: found ['text']; expected"),
        ({"train.jsonl": [{"text": " ", "label": "x"}]}, ":1: found an empty text"),
        ({"train.jsonl": [{"text": "a", "label": None}]}, ":1: found the label None"),
        ({"train.jsonl": [{"text": "a", "cats": {"x": 2}}]}, ":1: found cats"),
        ({"train.jsonl": [{"text": "a", "spans": [[0, 2, "X"]]}]}, "contains no word"),
        ({"train.jsonl": [{"text": "a b", "spans": [[1, 2, "X"]]}]}, "no word of"),
        ({"train.jsonl": [{"text": "a", "spans": [[0, "X"]]}]}, ":1: found the span"),
        ({"train.jsonl": [{"text": "a", "spans": 3}]}, ":1: found spans 3; expected a"),
        ({"train.jsonl": [{"text": "a", "ents": "X"}]}, ":1: found ents 'X'; expected"),
        ({"train.jsonl": [{"text": "a", "spans": None}]}, ":1: found ['text']; exp"),
        ({"train.jsonl": [{"text": "a", "spans": [[0, 1, ""]]}]}, ":1: found the span"),
        ({"train.jsonl": [{"text": "a", "spans": A, "ents": A}]}, ":1: found spans "),
        (
            {"train.jsonl": [{"text": "a", "cats": {"x": 1}, "label": "x"}]},
            ":1: found cats ",
        ),
        ({"train.jsonl": HALF % '"label": "\\ud800"'}, ":1: found half a character"),
        ({"train.jsonl": HALF % '"cats": {"\\ud800": 1}'}, ":1: found half a charact"),
        ({"train.jsonl": HALF % '"ents": [[0, 1, "\\ud800"]]'}, ":1: found half"),
        ({"train.spacy": "nothing"}, "train.spacy: cannot be read as a .spacy"),
        ({"train.conll": "a O", "train.jsonl": ""}, "found train files of several"),
        ({"train-dev.conllu": ANN}, "found a name that fits train and dev"),
    ],
)  # fmt: skip
def test_bad_data_is_refused_with_one_sentence(tmp_path, files, expected):
    files = {**files, "notes.txt": ""} if files else files
    source, output = write_files(tmp_path / "source", files), tmp_path / "output"
    said = refused("prepare", source, output)
    assert not output.exists()
    # Compare without spaces, because the terminal also breaks lines within paths.
    assert expected.replace(" ", "") in said.replace(" ", "")


def test_other_encodings_are_refused(tmp_path):
    source = write_files(tmp_path / "source", {})
    (source / "train.conll").write_bytes(b"a\tO\ncaf\xe9\tO\n")
    said = refused("prepare", source, tmp_path / "output").replace(" ", "")
    assert "train.conll:2:thisisnotUTF-8" in said


def test_bad_arguments_are_refused(tmp_path):
    for args in ([tmp_path], [tmp_path, tmp_path, tmp_path]):
        assert "Expected SOURCE and OUTPUT" in refused("prepare", *args)
    output = tmp_path / "output"
    assert "no such file or folder" in refused("prepare", tmp_path / "nowhere", output)
    source = write_files(tmp_path / "source", {"data.json": "", "train.conllu": ANN})
    said = refused("prepare", source, output, "--dev", source / "data.json")
    assert "found the suffix '.json'; expected one of .conllu" in said
    said = refused("prepare", source, output, "--lang", "tlh")
    assert "found the language 'tlh'" in said
