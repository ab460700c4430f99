"""Test how trees, entities, spaces and line ends are read from CoNLL-U files."""

import pytest
from helpers.gold import TREE, TREES


def test_docs_have_what_the_treebank_says(prepare):
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
    # "du" is not "de" and "le" written together, so it stays one token.
    assert [token.text for token in second] == "A hearing began du jour .".split()
    assert [token.head.text for token in second][3:5] == ["jour", "hearing"]
    assert second[3].lemma_ == "de le" and str(second[3].morph) == "Definite=Def"
    assert "2 multiword tokens differ" in output


def test_windows_line_ends(prepare):
    docs, _ = prepare(
        {"train.conllu": TREES, "dev.conllu": TREES.replace("\n", "\r\n")}
    )
    assert docs["dev"][0].to_json() == docs["train"][0].to_json()


def test_entities_are_unset_if_the_treebank_has_none(prepare):
    docs, _ = prepare({"train.conllu": TREE.format("Ann"), "dev.conllu": TREES})
    assert not docs["train"][0].has_annotation("ENT_IOB")
    assert docs["dev"][0].has_annotation("ENT_IOB")


@pytest.mark.parametrize(
    "options, sizes", [([], [10, 10, 3]), (["--sentences", 7], [7, 7, 7, 2])]
)
def test_sentences_are_joined_to_docs(prepare, options, sizes):
    content = "".join(TREE.format(f"n{i}") for i in range(23))
    docs, _ = prepare({"train.conllu": content, "dev.conllu": content}, *options)
    assert [len(list(doc.sents)) for doc in docs["dev"]] == sizes
    assert [doc[0].text for doc in docs["train"]] == [
        f"n{i}" for i in range(0, 23, sizes[0])
    ]


def test_korean_treebank_needs_no_mecab(prepare):
    content = TREE.format("눈이").replace("runs", "온다")
    docs, output = prepare(
        {"ko_gsd-ud-train.conllu": content, "ko_gsd-ud-dev.conllu": content},
        "--lang",
        "ko",
    )
    assert docs["train"][0].text == "눈이 온다. "
    assert "cannot be used" not in output  # CoNLL-U needs no tokenizer


def test_spans_survive_the_joining_of_sentences(prepare):
    docs, _ = prepare(
        {"train.conllu": TREES * 2, "dev.conllu": TREES}, "--spans-key", "sc"
    )
    spans = docs["train"][0].spans["sc"]
    assert [(span.text, span.label_) for span in spans] == [("Ann Lee", "PERSON")] * 2
