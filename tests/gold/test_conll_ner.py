"""Test reading files with one word and its entity tag per line."""


def test_words_tags_and_entities(prepare):
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


def test_each_sentence_is_a_doc_by_default(prepare):
    content = "\n\n".join(f"w{i}\tO\nx\tU-A" for i in range(6))
    docs, _ = prepare({"train.iob": content, "dev.iob": content}, "--sentences", 4)
    assert [len(list(doc.sents)) for doc in docs["train"]] == [4, 2]
    assert [len(doc.ents) for doc in docs["train"]] == [4, 2]
    docs, _ = prepare({"train.iob": content, "dev.iob": content})
    assert len(docs["train"]) == 6
