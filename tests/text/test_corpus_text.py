"""Text files of any kind become the words and sentences of a corpus."""

import codecs
import json
import sys

import numpy as np
import pytest
import spacy
from helpers.corpora import build, by_spacy, sentences, write
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.formats.small_files import write_vocab
from spacy_elmo.text.chunks import Chunk
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.text_files import find_files
from spacy_elmo.text.tokenized_chunks import tokenize_chunk
from spacy_elmo.text.tokenizers import Tokenization

TEXT = "Snow fell. It did not stop!\nDr. Kim's dog (3 kg) left...\n\nThe end?  «Yes.»\n"


# Kinds of files


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    "name",
    ["a.txt", "a.jsonl", "a.txt.gz", "a.jsonl.gz", "a", "a.TXT", "A.JSONL", "a.Txt.GZ"],
)
def test_kinds_of_files_have_the_same_words(tmp_path, name, mark):
    data = TEXT
    if "jsonl" in name.lower():
        data = "".join(json.dumps({"text": t}) + "\n" for t in TEXT.split("\n\n"))
    write(tmp_path / "texts" / name, mark + data.encode())
    texts = tmp_path / "texts"  # in a folder, files need a known suffix
    corpus, new = build(tmp_path / "corpus", texts / name if name == "a" else texts)
    assert new
    assert sentences(corpus) == by_spacy(TEXT.split("\n"))
    assert corpus.meta["train"]["n_documents"] == 2
    assert corpus.meta["train"]["n_words"] == sum(map(len, sentences(corpus)))
    assert corpus.meta["train"]["n_sentences"] == len(sentences(corpus))


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("annotated", [False, True])
def test_spacy_files(tmp_path, annotated, gz):
    nlp = spacy.blank("en")
    words = ["One", ".", "  ", "Two", "three", ".", "Four"]
    doc = Doc(nlp.vocab, words=words)
    if annotated:
        doc = Doc(nlp.vocab, words=words, sent_starts=[1, 0, 1, 0, 1, 0, 0])
    path = write(tmp_path / f"docs.spacy{gz}", DocBin(docs=[doc, doc]).to_bytes())
    corpus, _ = build(tmp_path / "corpus", path)
    expected = [["One", "."], ["Two", "three", "."], ["Four"]]
    if annotated:
        expected = [["One", "."], ["Two"], ["three", ".", "Four"]]
    assert sentences(corpus) == expected * 2
    assert corpus.meta["train"]["n_documents"] == 2


def test_broken_spacy_file_is_named(tmp_path):
    path = write(tmp_path / "docs.spacy", DocBin().to_bytes()[:-3])
    with pytest.raises(ValueError, match=r"docs\.spacy: cannot be read .*") as caught:
        build(tmp_path / "corpus", path)
    assert "\n" not in str(caught.value)


def test_folders_globs_and_lists(tmp_path):
    texts = tmp_path / "texts"
    names = ["b.txt", "a.txt", "sub/c.txt.gz", "sub/d.jsonl", "notes.md"]
    for name in names:
        word = f"w{name[-5]}"
        write(texts / name, json.dumps({"text": word}) if "jsonl" in name else word)
    found = {}
    for key, patterns in {
        "folder": [texts],
        "glob": [texts / "*.txt"],
        "deep": [texts / "**" / "*.jsonl"],
        "list": [texts / "b.txt", texts / "a.txt", texts / "*.txt"],
    }.items():
        corpus, _ = build(tmp_path / key, *patterns)
        found[key] = [words[0] for words in sentences(corpus)]
    assert found == {
        "folder": ["wa", "wb", "w" + names[2][-5], "wj"],
        "glob": ["wa", "wb"],
        "deep": ["wj"],
        "list": ["wb", "wa"],
    }


def test_folders_may_be_nested_deeply(tmp_path, deep_folder):
    write(deep_folder / "a.txt", "one word")
    (tmp_path / "back").symlink_to(tmp_path, target_is_directory=True)
    (file,) = find_files([str(tmp_path)])
    assert file == deep_folder / "a.txt"


@pytest.mark.parametrize("name", ["nowhere.txt", "nowhere/*.txt", "empty"])
def test_missing_text_is_named(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no such file|found no .txt"):
        build(tmp_path / "corpus", tmp_path / name)


@pytest.mark.parametrize("data", ["", "\n\n", " \t \n"])
def test_text_without_words_gets_one_sentence(tmp_path, data):
    path = write(tmp_path / "a.txt", data)
    with pytest.raises(ValueError, match=r"a\.txt: found no words$"):
        build(tmp_path / "corpus", path)


# Words and sentences


@settings(max_examples=150)
@given(st.text(" \t\"').!?。؟…,-aBé한1", max_size=40))
@example('He left.  "Why?" he said.')  # the second sentence begins with a space token
def test_sentences_are_those_of_the_sentencizer(text):
    found = tokenize_chunk(Tokenization("en"), 0.0, Chunk([text], [True], [False]))
    tokens = found.streams[0].tokens
    parts = np.split(tokens, np.flatnonzero(tokens == 0))[1:]
    assert [[found.words[n - 1] for n in p[1:]] for p in parts] == by_spacy(
        [text], "en"
    )


def test_tokenized_text_is_a_sentence_a_line(tmp_path):
    path = write(tmp_path / "a.txt", "A . B\tc!\r\n\n don't\u3000stop \n")
    corpus, _ = build(tmp_path / "corpus", path, tokenized=True)
    assert sentences(corpus) == [["A", ".", "B", "c!"], ["don't", "stop"]]
    tokenization = Tokenization("en", tokenized=True)
    assert list(load_sentences([str(path)], tokenization)) == sentences(corpus)


def test_words_come_by_falling_frequency(tmp_path):
    path = write(tmp_path / "a.txt", "b a c a b a\n\na d\n")
    corpus, _ = build(tmp_path / "corpus", path, tokenized=True)
    assert corpus.words[:2] == ["a", "b"] and sorted(corpus.words[2:]) == ["c", "d"]
    assert corpus.counts.tolist() == [4, 2, 1, 1]


def test_words_with_line_breaks_stay_on_their_line(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["a\nb", "a b", "a\rb", "c\r"])
    path = write(tmp_path / "docs.spacy", DocBin(docs=[doc]).to_bytes())
    corpus, _ = build(tmp_path / "corpus", path)
    assert sentences(corpus) == [["a b", "a b", "a b", "c "]]
    assert dict(zip(corpus.words, corpus.counts.tolist())) == {"a b": 3, "c ": 1}
    write_vocab(tmp_path / "vocab.txt", corpus.words)


def test_korean(tmp_path):
    path = write(tmp_path / "a.txt", "눈이 온다. 개가 짖는다.")
    corpus, _ = build(
        tmp_path / "corpus", path, lang="ko", tokenizer="spacy.Tokenizer.v1"
    )
    assert sentences(corpus) == [["눈이", "온다", "."], ["개가", "짖는다", "."]]


@pytest.mark.parametrize(
    "lang, tokenizer, match",
    [
        (
            "ko",
            None,
            r"cannot be used here .*'spacy\.Tokenizer\.v1' .*'spacy-elmo\.Mecab",
        ),
        ("qq", None, r"the language 'qq'"),
        ("en.punctuation", None, r"the language 'en\.punctuation'"),
        ("char_classes", None, r"the language 'char_classes'"),
        ("en", "my.v1", r"the tokenizer 'my\.v1'"),
    ],
)
def test_tokenizers_that_are_not_there(tmp_path, monkeypatch, lang, tokenizer, match):
    monkeypatch.setitem(sys.modules, "natto", None)  # the Korean tokenizer imports it
    path = write(tmp_path / "a.txt", "눈이 온다.")
    with pytest.raises(ValueError, match=match) as caught:
        build(tmp_path / "corpus", path, lang=lang, tokenizer=tokenizer)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_that_is_not_there_is_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "natto", None)
    said = []
    tokenization = Tokenization("ko").or_rules(said.append)
    assert tokenization == Tokenization("ko", "spacy.Tokenizer.v1")
    assert len(said) == 1 and "mecab" in said[0] and "\n" not in said[0]
    for fine in (Tokenization("en"), tokenization, Tokenization("ko", tokenized=True)):
        assert fine.or_rules(said.append) == fine
    assert len(said) == 1
