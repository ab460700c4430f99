"""Test reading sentences with tags from CoNLL-U and .spacy files."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.analysis.tagged_sentences import TaggedSentence, read_tagged

CONLLU = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\tMood=Ind|Tense=Pres\t0\troot\t_\t_
2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

1\tGo\tgo\tVERB\tVB\tMood=Imp\t0\troot\t_\t_
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_conllu(tmp_path, encoding):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding)
    first, second = read_tagged(path)
    assert first == TaggedSentence(
        ["do", "n't"],
        {
            "pos": ["AUX", "PART"],
            "tag": ["VBP", ""],
            "morph": ["Mood=Ind|Tense=Pres", "_"],
        },
    )
    assert second.words == ["Go"]
    assert list(read_tagged(path, limit=1)) == [first]
    path.write_bytes(CONLLU.rstrip("\n").replace("\n", "\r\n").encode())
    assert list(read_tagged(path)) == [first, second]


def test_spacy_and_conllu_files_give_the_same(tmp_path):
    vocab = spacy.blank("xx").vocab
    doc = Doc(
        vocab,
        words=["do", "n't", "\n", "Go"],
        pos=["AUX", "PART", "SPACE", "VERB"],
        tags=["VBP", "", "_SP", "VB"],
        morphs=["Mood=Ind|Tense=Pres", "", "", "Mood=Imp"],
        sent_starts=[True, False, True, False],
    )
    DocBin(docs=[doc], attrs=["POS", "TAG", "MORPH", "SENT_START"]).to_disk(
        tmp_path / "a.spacy"
    )
    (tmp_path / "a.conllu").write_text(CONLLU)
    found, expected = (
        list(read_tagged(tmp_path / f"a.{ending}")) for ending in ("spacy", "conllu")
    )
    assert found == expected


def test_spacy_files_without_sentences_and_tags(tmp_path):
    words = "Who is it ? It is me".split()
    doc = Doc(spacy.blank("xx").vocab, words=words, pos=["X"] * 7)
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    first, second = read_tagged(tmp_path / "a.spacy")
    assert first.words + second.words == words and len(first.words) == 4
    assert first.tags == {"pos": ["X"] * 4, "tag": [""] * 4, "morph": [""] * 4}
