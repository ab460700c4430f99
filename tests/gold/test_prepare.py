import sys
from types import ModuleType

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.gold.splits import parts_in_name

# A range that is spelled by its words and one that is not, an empty node, a crossing
# relation, a missing lemma, a space that should not be there, entities.
TREES = """\
# sent_id = a-1
# text = I don't see Ann Lee .
1	I	I	PRON	PRP	Case=Nom|Number=Sing	4	nsubj	_	_
2-3	don't	_	_	_	_	_	_	_	_
2	do	do	AUX	VBP	Tense=Pres	4	aux	_	_
3	n't	not	PART	RB	_	4	advmod	_	_
4	see	see	VERB	VB	VerbForm=Inf	0	root	_	_
5	Ann	_	PROPN	NNP	Number=Sing	4	obj	_	NE=B-PERSON
6	Lee	Lee	PROPN	NNP	Number=Sing	5	flat	_	CorrectSpaceAfter=No|NE=L-PERSON
7	.	.	PUNCT	.	_	4	punct	_	_

# sent_id = a-2
# text = A hearing began du jour.
1	A	a	DET	DT	_	2	det	_	_
2	hearing	hearing	NOUN	NN	Number=Sing	3	nsubj	_	_
3	began	begin	VERB	VBD	Tense=Past	0	root	_	_
3.1	_	_	_	_	_	_	_	_	_
4-5	du	_	_	_	_	_	_	_	_
4	de	de	ADP	_	_	6	case	_	_
5	le	le	DET	_	Definite=Def	6	det	_	_
6	jour	jour	NOUN	_	_	2	nmod	_	SpaceAfter=No
7	.	.	PUNCT	.	_	3	punct	_	_

"""
PLAIN = """\
1	{}	x	NOUN	NN	Number=Sing	2	nsubj	_	_
2	runs	run	VERB	VBZ	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

"""


def call(*args):
    return CliRunner().invoke(app, ["prepare", *map(str, args)])


def said(done):
    return " ".join(done.output.split())  # without the line breaks of the terminal


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        if not isinstance(text, str):
            text = "".join(srsly.json_dumps(record) + "\n" for record in text)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


@pytest.fixture
def prepare(tmp_path):
    """Files in, docs by part out, and what was said."""

    def run(files, *args):
        source, output = write(tmp_path / "source", files), tmp_path / "output"
        done = call(source, output, *args)
        assert done.exit_code == 0, done.output
        docs = {path.stem: read(path) for path in output.glob("*.spacy")}
        return docs, said(done)

    return run


def fails(tmp_path, files, *args):
    done = call(write(tmp_path / "source", files), tmp_path / "output", *args)
    assert done.exit_code == 1 and "Traceback" not in done.output
    assert not (tmp_path / "output").exists()
    return said(done).replace(" ", "")


def test_treebank_is_read_as_it_is_written(prepare):
    docs, output = prepare(
        {"en_ewt-ud-train.conllu": TREES, "en_ewt-ud-dev.conllu": TREES}
    )
    assert set(docs) == {"train", "dev"}
    (doc,) = docs["train"]
    first, second = doc.sents
    assert doc.text == "I don't see Ann Lee . A hearing began du jour. "
    assert [token.text for token in first] == "I do n't see Ann Lee .".split()
    assert [token.head.text for token in first] == "see see see see see Ann see".split()
    assert [token.lemma_ for token in first[3:]] == ["see", "", "Lee", "."]
    assert [token.tag_ for token in first] == "PRP VBP RB VB NNP NNP .".split()
    assert [token.pos_ for token in first][-2:] == ["PROPN", "PUNCT"]
    assert str(first[0].morph) == "Case=Nom|Number=Sing"
    assert first.root.dep_ == "ROOT" and first[4].dep_ == "obj"
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Ann Lee", "PERSON")]
    assert doc.has_annotation("ENT_IOB", require_complete=True)
    # "du" stands for two words that do not spell it: one token, as tokenizers see it.
    assert [token.text for token in second] == "A hearing began du jour .".split()
    assert [token.head.text for token in second][3:5] == ["jour", "hearing"]
    assert second[3].lemma_ == "de le" and str(second[3].morph) == "Definite=Def"
    assert "2 words stand for several" in output


def test_line_ends_of_windows(prepare):
    docs, _ = prepare(
        {"train.conllu": TREES, "dev.conllu": TREES.replace("\n", "\r\n")}
    )
    assert docs["dev"][0].to_json() == docs["train"][0].to_json()


def test_treebank_without_entities_says_nothing_of_them(prepare):
    docs, _ = prepare({"train.conllu": PLAIN.format("Ann"), "dev.conllu": TREES})
    assert not docs["train"][0].has_annotation("ENT_IOB")
    assert docs["dev"][0].has_annotation("ENT_IOB")


@pytest.mark.parametrize(
    "options, sizes", [([], [10, 10, 3]), (["--sentences", 7], [7, 7, 7, 2])]
)
def test_sentences_are_grouped(prepare, options, sizes):
    text = "".join(PLAIN.format(f"n{i}") for i in range(23))
    docs, _ = prepare({"train.conllu": text, "dev.conllu": text}, *options)
    assert [len(list(doc.sents)) for doc in docs["dev"]] == sizes
    assert [doc[0].text for doc in docs["train"]] == [
        f"n{i}" for i in range(0, 23, sizes[0])
    ]


def test_korean_treebank_needs_no_mecab(prepare):
    text = PLAIN.format("눈이").replace("runs", "온다")
    docs, output = prepare(
        {"ko_gsd-ud-train.conllu": text, "ko_gsd-ud-dev.conllu": text}, "--lang", "ko"
    )
    assert docs["train"][0].text == "눈이 온다. "
    assert "cannot be used" not in output  # it needs none


def test_lines_of_tags(prepare):
    train = "\ufeffAnn\tB-PERSON\r\nLee\tI-PERSON\r\nran\tO\r\n\t\r\nRome\tB-GPE\n"
    dev = "-DOCSTART- -X- O\n\nAnn NNP S-PERSON\nran VBD O\nNew NNP B-GPE\n"
    dev += "York NNP E-GPE\n"
    docs, _ = prepare({"wnut17train.conll": train, "emerging.dev.conll": dev})
    one, two = docs["train"]
    assert [token.text for token in one] == ["Ann", "Lee", "ran"]
    assert [(ent.text, ent.label_) for ent in one.ents] == [("Ann Lee", "PERSON")]
    assert [ent.label_ for ent in two.ents] == ["GPE"]
    assert not one.has_annotation("TAG")
    assert one.has_annotation("SENT_START")
    (doc,) = docs["dev"]
    assert [token.tag_ for token in doc] == ["NNP", "VBD", "NNP", "NNP"]
    assert [ent.text for ent in doc.ents] == ["Ann", "New York"]


def test_tagged_sentences_stay_apart_unless_told(prepare):
    text = "\n\n".join(f"w{i}\tO\nx\tU-A" for i in range(6))
    docs, _ = prepare({"train.iob": text, "dev.iob": text}, "--sentences", 4)
    assert [len(list(doc.sents)) for doc in docs["train"]] == [4, 2]
    assert [len(doc.ents) for doc in docs["train"]] == [4, 2]
    docs, _ = prepare({"train.iob": text, "dev.iob": text})
    assert len(docs["train"]) == 6


def test_character_spans_are_widened_to_tokens_and_counted(prepare):
    record = {"text": "눈이 서울에 왔다.", "spans": [[3, 5, "LC"]]}
    spans = [
        {"start": 0, "end": 4, "label": "PS"},
        {"start": 7, "end": 11, "label": "X"},
    ]
    other = {"text": "Ann ran off.", "entities": spans}
    docs, output = prepare(
        {"resplit-train.jsonl": [record, other], "resplit-dev.jsonl": [record]},
        *("--lang", "ko"),
    )
    korean, english = docs["train"]
    assert [(ent.text, ent.label_) for ent in korean.ents] == [("서울에", "LC")]
    assert [ent.text for ent in english.ents] == ["Ann", "off"]  # spaces are left out
    assert korean.text == record["text"]
    assert "2 entities ended inside of a token" in output
    assert "the tokenizer of 'ko' cannot be used here" in output.lower()
    assert not korean.has_annotation("SENT_START")


def test_overlaps_leave_the_longest_and_are_kept_as_spans(prepare):
    spans = [[0, 3, "A"], [0, 8, "B"], [4, 12, "C"], [0, 8, "B"], [9, 12, "D"]]
    record = {"text": "one four six", "spans": spans}
    docs, output = prepare(
        {"train.jsonl": [record], "dev.jsonl": [{"text": "none", "spans": []}]},
        *("--spans-key", "sc"),
    )
    doc = docs["train"][0]
    assert [ent.label_ for ent in doc.ents] == ["B", "D"]
    assert [span.label_ for span in doc.spans["sc"]] == ["A", "B", "C", "D"]
    assert "2 entities overlapped" in output
    empty = docs["dev"][0]
    assert list(empty.spans["sc"]) == [] and empty.has_annotation("ENT_IOB")


def test_spans_of_treebanks_survive_the_grouping(prepare):
    docs, _ = prepare(
        {"train.conllu": TREES * 2, "dev.conllu": TREES}, "--spans-key", "sc"
    )
    spans = docs["train"][0].spans["sc"]
    assert [(span.text, span.label_) for span in spans] == [("Ann Lee", "PERSON")] * 2


def test_tags_of_a_tokenizer_are_not_gold_and_its_lost_spaces_are_found(
    prepare, monkeypatch
):
    class Node:
        feature = "NNG,*"

        def __init__(self, surface):
            self.surface = surface

        def is_eos(self):
            return False

    class MeCab:
        def __init__(self, options):
            pass

        def parse(self, text, as_nodes):
            return [Node(word) for word in text.split()]

    natto = ModuleType("natto")
    natto.MeCab = MeCab
    monkeypatch.setitem(sys.modules, "natto", natto)
    record = {"text": " 눈이  서울에", "spans": [[5, 8, "LC"]]}
    docs, output = prepare(
        {"train.jsonl": [record], "dev.jsonl": [record]}, "--lang", "ko"
    )
    assert "cannot be used" not in output and "widened" not in output
    (doc,) = docs["train"]
    assert doc.text == record["text"]
    assert [ent.text for ent in doc.ents] == ["서울에"]
    assert not doc.has_annotation("TAG") and not doc.has_annotation("LEMMA")


def test_a_broken_mecab_is_as_none(prepare, monkeypatch):
    natto = ModuleType("natto")
    natto.MeCab = lambda options: 1 / 0
    monkeypatch.setitem(sys.modules, "natto", natto)
    record = {"text": "눈이 온다.", "label": "weather"}
    docs, output = prepare(
        {"train.jsonl": [record], "dev.jsonl": [record]}, "--lang", "ko"
    )
    assert "spacy.Tokenizer.v1" in output
    assert [token.text for token in docs["train"][0]] == ["눈이", "온다", "."]


def test_categories(prepare):
    given = {"a": 1, "b": 0.5}
    docs, _ = prepare(
        {
            "train.jsonl": [{"text": "one", "cats": given}],
            "valid.jsonl": [{"text": "two", "cats": {"a": False}}],
        }
    )
    assert docs["train"][0].cats == given and docs["dev"][0].cats == {"a": 0.0}
    assert not docs["train"][0].has_annotation("ENT_IOB")


def test_spans_that_are_null_are_not_there(prepare):
    spans = [[0, 3, "PERSON"]]
    given = [
        {"text": "Ann", "spans": None, "ents": spans},
        {"text": "Bob", "entities": None, "label": "x"},
    ]
    docs, _ = prepare({"train.jsonl": given, "dev.jsonl": given})
    first, second = docs["train"]
    assert [ent.text for ent in first.ents] == ["Ann"]
    assert not second.ents and second.cats == {"x": 1.0}


def test_one_label_a_text_means_not_the_others(prepare):
    docs, output = prepare(
        {
            "train.jsonl": [{"text": "one", "label": "a"}, {"text": "x", "label": 2}],
            "dev.jsonl": [{"text": "two", "label": "c"}],
            "test.jsonl": [{"text": "three", "label": "a"}],
        }
    )
    assert docs["train"][0].cats == {"a": 1.0, "2": 0.0, "c": 0.0}
    assert docs["dev"][0].cats == {"a": 0.0, "2": 0.0, "c": 1.0}
    assert docs["test"][0].cats["a"] == 1.0
    assert "a 1, 2 1" in output


def test_docs_of_spacy_stay_as_they_are(tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp(f"Ann ran {i}.") for i in range(3)]
    for doc in docs:
        doc.ents = [Span(doc, 0, 1, label="PERSON")]
        doc.cats = {"x": 0.25}
        doc.user_data["from"] = "here"
    for part in ("train", "dev"):
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{part}.spacy")
    done = call(tmp_path, tmp_path / "out", "--spans-key", "sc")
    assert done.exit_code == 0, done.output
    store = DocBin(store_user_data=True).from_disk(tmp_path / "out" / "train.spacy")
    for old, new in zip(docs, store.get_docs(nlp.vocab)):
        assert new.text == old.text and new.cats == old.cats
        assert [ent.label_ for ent in new.ents] == ["PERSON"]
        assert [span.text for span in new.spans["sc"]] == ["Ann"]
        assert new.user_data["from"] == "here"


def test_every_tenth_document_is_set_apart_without_dev(prepare):
    records = [{"text": f"text {i}", "label": "a"} for i in range(25)]
    docs, output = prepare({"train.jsonl": records})
    assert [doc.text for doc in docs["dev"]] == ["text 9", "text 19"]
    assert len(docs["train"]) == 23
    assert "2 of the documents, every 10th, were taken" in output


def test_few_documents_give_one_and_a_single_one_is_refused(prepare, tmp_path):
    docs, _ = prepare({"train.jsonl": [{"text": x, "label": x} for x in "abc"]})
    assert [doc.text for doc in docs["dev"]] == ["c"]
    single = write(tmp_path / "single", {"train.conllu": TREES})
    done = call(single, tmp_path / "other")
    assert done.exit_code == 1 and "a single document" in said(done)


def test_limit_is_for_training_across_files(prepare):
    text = "".join(PLAIN.format(f"n{i}") for i in range(5))
    names = ("train-a", "train-b", "train-c", "dev")
    files = {f"{name}.conllu": text for name in names}
    files["dev.conllu"] += text
    docs, output = prepare(files, "--limit", 7, "-n", 2)
    assert [len(list(doc.sents)) for doc in docs["train"]] == [2, 2, 1, 2]
    assert sum(len(list(doc.sents)) for doc in docs["dev"]) == 10
    assert "train 4 7 21 3 0 0" in output and "dev 5 10 30 3 0 0" in output


def test_files_by_option_take_the_place_of_those_in_the_folder(tmp_path):
    trees = {"train.conllu": TREES, "dev.conllu": TREES}
    folder = write(tmp_path / "folder", {**trees, "x.tsv": "w\tO"})
    output = tmp_path / "output"
    done = call(folder, output, "--dev", folder / "x.tsv")
    assert done.exit_code == 0, done.output
    assert read(output / "dev.spacy")[0].text.strip() == "w"
    done = call("--train", folder / "x.tsv", "--dev", folder / "dev.conllu", output)
    assert done.exit_code == 0, done.output
    assert len(read(output / "train.spacy")) == 1
    assert call(folder / "x.tsv", output, "--dev", folder / "x.tsv").exit_code == 0


def test_output_of_other_data_is_replaced(tmp_path):
    text = PLAIN.format("Ann")
    parts = {f"{part}.conllu": text for part in ("train", "dev", "test")}
    output = tmp_path / "output"
    assert call(write(tmp_path / "one", parts), output).exit_code == 0
    assert (output / "test.spacy").exists()
    del parts["test.conllu"]
    assert call(write(tmp_path / "two", parts), output).exit_code == 0
    assert not (output / "test.spacy").exists()


@pytest.mark.parametrize(
    "name, parts",
    [
        ("train", ["train"]),
        ("en_ewt-ud-train", ["train"]),
        ("wnut17train", ["train"]),
        ("emerging.dev", ["dev"]),
        ("Validation", ["dev"]),
        ("testing_2", ["test"]),
        ("constrained", []),
        ("device", []),
        ("latest", []),
        ("train-test", ["train", "test"]),
    ],
)
def test_parts_by_name(name, parts):
    assert parts_in_name(name) == parts


TREE = PLAIN.format("Ann")
RANGE = "4-5\tx" + "\t_" * 8 + "\n"


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, "found no gold data in this folder"),
        ({"README.md": "x"}, "found no gold data in this folder"),
        ({"dev.conllu": TREE}, "found no file to train on"),
        ({"train.conllu": ""}, "train.conllu: found nothing in this file"),
        ({"train.conllu": TREE + "1\tx\n"}, "train.conllu:5: found 2 columns"),
        ({"train.conllu": TREE.replace("2\truns", "3\truns")}, ":2: found ID 3"),
        ({"train.conllu": TREE.replace("0\troot", "9\troot")}, ":2: found HEAD '9'"),
        ({"train.conllu": TREE.replace("0\troot", "_\troot")}, ":2: found HEAD '_'"),
        ({"train.conllu": TREE.replace("\t0\troot", "\t1\tdep")}, ":1: found 0 words"),
        ({"train.conllu": TREE.replace("\t2\tnsubj", "\t3\tnsubj").replace(
            "\t2\tpunct", "\t1\tpunct")}, ":1: the heads from here on go in a circle"),
        ({"train.conllu": TREE.replace("NOUN", "NAUN")}, ":1: spaCy cannot read this"),
        ({"train.conllu": TREE.replace("=Sing", "")}, ":1: found FEATS 'Number'"),
        ({"train.conllu": RANGE + TREE}, ":1: found no words for the range"),
        ({"train.conll": "a\tO\nb\tO\tO\n"}, "train.conll:2: found 3 columns"),
        ({"train.conll": "a O\n\nb\n"}, "train.conll:3: found 1 columns"),
        ({"train.conll": "a\tO\nb\t\n"}, "train.conll:2: found 2 columns"),
        ({"train.conll": "a\tO\nb\tPERSON\n"}, ":2: found the tag 'PERSON'"),
        ({"train.jsonl": "{}\n"}, "train.jsonl:1: found no text"),
        ({"train.jsonl": '\n{"text"\n'}, "train.jsonl:2: this is not JSON"),
        ({"train.jsonl": [{"text": "a"}]}, ":1: found ['text'], expected"),
        ({"train.jsonl": [{"text": " ", "label": "x"}]}, ":1: found an empty text"),
        ({"train.jsonl": [{"text": "a", "label": None}]}, ":1: found the label None"),
        ({"train.jsonl": [{"text": "a", "cats": {"x": 2}}]}, ":1: found cats"),
        ({"train.jsonl": [{"text": "a", "spans": [[0, 2, "X"]]}]}, "which has no word"),
        ({"train.jsonl": [{"text": "a b", "spans": [[1, 2, "X"]]}]}, "has no word"),
        ({"train.jsonl": [{"text": "a", "spans": [[0, "X"]]}]}, ":1: found the span"),
        ({"train.jsonl": [{"text": "a", "spans": 3}]}, ":1: found spans 3, expected a"),
        ({"train.jsonl": [{"text": "a", "ents": "X"}]}, ":1: found ents 'X', expected"),
        ({"train.jsonl": [{"text": "a", "spans": None}]}, ":1: found ['text'], exp"),
        ({"train.spacy": "nothing"}, "train.spacy: this is not a .spacy file"),
        ({"train.conll": "a O", "train.jsonl": ""}, "found several kinds of train"),
        ({"train-dev.conllu": TREE}, "is this for train or dev?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(tmp_path, files, expected):
    files = {**files, "notes.txt": ""} if files else files
    assert expected.replace(" ", "") in fails(tmp_path, files)


def test_bytes_that_are_not_utf8(tmp_path):
    source = write(tmp_path / "source", {})
    (source / "train.conll").write_bytes(b"a\tO\ncaf\xe9\tO\n")
    done = call(source, tmp_path / "output")
    assert done.exit_code == 1
    assert "train.conll:2:thisisnotUTF-8" in said(done).replace(" ", "")


def test_arguments_that_cannot_be(tmp_path):
    for args in ([tmp_path], [tmp_path, tmp_path, tmp_path]):
        done = call(*args)
        assert done.exit_code == 1 and "Expected SOURCE and OUTPUT" in said(done)
    done = call(tmp_path / "nowhere", tmp_path / "output")
    assert done.exit_code == 1 and "no such file or folder" in said(done)
    other = write(tmp_path / "source", {"data.json": "", "train.conllu": TREE})
    done = call(other, tmp_path / "output", "--dev", other / "data.json")
    assert done.exit_code == 1 and "unknown kind of file" in said(done)
    done = call(other, tmp_path / "output", "--lang", "tlh")
    assert done.exit_code == 1 and "--lang is 'tlh'" in said(done)


def test_spacy_train_reads_what_was_made(tmp_path):
    """Entities, tags and heads as spaCy's trainer sees them, by its own tokenizer."""
    source = write(tmp_path / "source", {"train.conllu": TREES, "dev.conllu": TREES})
    output = tmp_path / "output"
    assert call(source, output, "--lang", "en").exit_code == 0
    nlp = spacy.blank("en")
    (example,) = Corpus(output / "train.spacy")(nlp)
    predicted: Doc = example.predicted
    assert [token.text for token in predicted[:7]] == "I do n't see Ann Lee .".split()
    assert example.get_aligned("TAG", as_string=True)[:2] == ["PRP", "VBP"]
    assert example.get_aligned_ner()[4:6] == ["B-PERSON", "L-PERSON"]
    heads, labels = example.get_aligned_parse(projectivize=False)
    assert heads[:7] == [3, 3, 3, 3, 3, 4, 3] and labels[3] == "ROOT"
