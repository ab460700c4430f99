"""Test reading JSONL files: texts with entities as character offsets, or with
categories."""

import sys
from types import ModuleType


def test_spans_are_extended_to_tokens_and_counted(prepare):
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
    assert "2 entities began or ended inside a token" in output
    assert "the tokenizer of 'ko' cannot be used here" in output.lower()
    assert not korean.has_annotation("SENT_START")


def test_of_overlapping_entities_the_longest_are_kept_and_all_are_spans(prepare):
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


def test_tags_set_by_the_tokenizer_are_dropped_and_its_lost_spaces_restored(
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
    assert "cannot be used" not in output and "extended" not in output
    (doc,) = docs["train"]
    assert doc.text == record["text"]
    assert [ent.text for ent in doc.ents] == ["서울에"]
    assert not doc.has_annotation("TAG") and not doc.has_annotation("LEMMA")


def test_a_broken_mecab_is_replaced_by_rules(prepare, monkeypatch):
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


def test_spans_that_are_null_are_ignored(prepare):
    spans = [[0, 3, "PERSON"]]
    given = [
        {"text": "Ann", "spans": None, "ents": spans},
        {"text": "Bob", "entities": None, "label": "x"},
    ]
    docs, _ = prepare({"train.jsonl": given, "dev.jsonl": given})
    first, second = docs["train"]
    assert [ent.text for ent in first.ents] == ["Ann"]
    assert not second.ents and second.cats == {"x": 1.0}


def test_empty_values_beside_others_are_ignored(prepare):
    given = [
        {"text": "Ann", "spans": [[0, 3, "PERSON"]], "ents": []},
        {"text": "Bob", "cats": {}, "label": "x"},
    ]
    docs, _ = prepare({"train.jsonl": given, "dev.jsonl": given})
    first, second = docs["train"]
    assert [ent.text for ent in first.ents] == ["Ann"]
    assert second.cats == {"x": 1.0}


def test_integers_may_have_any_size(prepare):
    given = f'{{"text": "Ann", "label": "x", "id": {2**70}}}\n'
    docs, _ = prepare({"train.jsonl": given, "dev.jsonl": given})
    assert docs["train"][0].cats == {"x": 1.0}


def test_a_single_label_sets_all_others_to_0(prepare):
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
