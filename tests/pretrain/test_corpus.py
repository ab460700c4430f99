"""From files of any kind and state to a corpus."""

import codecs
import json
import os
import sys

import numpy as np
import pytest
import spacy
from helpers.corpora import build, by_spacy, sentences, write
from helpers.pretraining import write_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.formats.small_files import write_vocab
from spacy_elmo.pretrain import corpus as corpus_module
from spacy_elmo.pretrain import corpus_writer
from spacy_elmo.text import chunks, tokenized_chunks
from spacy_elmo.text.chunks import Chunk
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.tokenized_chunks import tokenize_chunk
from spacy_elmo.text.tokenizers import Tokenization

TEXT = "Snow fell. It did not stop!\nDr. Kim's dog (3 kg) left...\n\nThe end?  «Yes.»\n"


# Files and what is in them


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
    texts = tmp_path / "texts"  # a folder, where the kind is known by the name
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
@example('He left.  "Why?" he said.')  # a space token begins the sentence
def test_sentences_are_those_of_the_sentencizer(text):
    found = tokenize_chunk(Tokenization("en"), 0.0, Chunk([text], [True], [False]))
    tokens = found.streams[0].tokens
    parts = np.split(tokens, np.flatnonzero(tokens == 0))[1:]
    assert [[found.words[n - 1] for n in p[1:]] for p in parts] == by_spacy([text])


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
            r"cannot be used here .*choose the tokenizer 'spacy\.Tokenizer\.v1'",
        ),
        ("qq", None, r"the language 'qq'"),
        ("en", "my.v1", r"the tokenizer 'my\.v1'"),
    ],
)
def test_tokenizers_that_are_not_there(tmp_path, monkeypatch, lang, tokenizer, match):
    monkeypatch.setitem(sys.modules, "natto", None)  # what Korean needs
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


# Written once


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_processes_change_no_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 200)
    monkeypatch.setattr(tokenized_chunks, "FEW_CHUNKS", 2)
    pools = []
    real = tokenized_chunks.ProcessPoolExecutor

    def pool(n_process, **options):
        pools.append(n_process)
        return real(n_process, **options)

    monkeypatch.setattr(tokenized_chunks, "ProcessPoolExecutor", pool)
    path = write_text(tmp_path / "a.txt")
    assert path.stat().st_size > 10 * 200
    for n in (1, 2):
        build(tmp_path / str(n), path, dev_share=0.3, n_process=n)
    assert pools == [2]
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_written_again_only_if_something_changed(tmp_path):
    path = write_text(tmp_path / "a.txt")
    folder = tmp_path / "corpus"
    assert build(folder, path)[1]
    before = files(folder)
    corpus, new = build(folder, path, n_process=2)
    assert not new and files(folder) == before
    assert len(sentences(corpus)) == 90
    for options in ({"lang": "de"}, {"dev_share": 0.1}, {"tokenized": True}):
        assert build(folder, path, **options)[1]
        assert not build(folder, path, **options)[1]
    build(folder, path)
    os.utime(path, ns=(0, 0))
    assert build(folder, path)[1]
    write(path, path.read_text() + "More.")
    assert build(folder, path)[1]
    (folder / corpus_module.META).unlink()  # as if it had been killed
    assert build(folder, path)[1]


def test_a_text_is_the_same_by_any_name(tmp_path, monkeypatch):
    path = write_text(tmp_path / "a.txt")
    assert build(tmp_path / "corpus", path)[1]
    monkeypatch.chdir(tmp_path)
    assert not build(tmp_path / "corpus", "a.txt")[1]


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    path = write_text(tmp_path / "a.txt")
    build(tmp_path, path)
    build(tmp_path, path, lang="de")
    assert path.exists()


def test_long_documents_are_cut_into_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_writer, "MAX_BLOCK", 20)
    path = write(tmp_path / "a.txt", "a b c d.\n" * 30 + "\n" + "e.\n" * 3)
    corpus, _ = build(tmp_path / "corpus", path)
    blocks = corpus.train.blocks
    assert corpus.meta["train"]["n_documents"] == 2
    assert blocks[0] == 0 and 150 in blocks
    assert not corpus.train.tokens[blocks].any()
    assert np.diff(blocks).tolist() == [20] * 7 + [10]


# Held out


def documents(corpus, part):
    text = " ".join(" ".join(words) for words in sentences(corpus, part))
    return {int(word[1:]) for word in text.split() if word.startswith("d")}


def test_held_out_by_document(tmp_path):
    texts = [f"d{n} begins.\nThen d{n} goes on. d{n} ends." for n in range(400)]
    path = write(tmp_path / "a.txt", "\n\n".join(texts))
    corpus, _ = build(tmp_path / "corpus", path, dev_share=0.2)
    train, dev = documents(corpus, "train"), documents(corpus, "dev")
    assert not train & dev and train | dev == set(range(400))
    assert 50 < len(dev) < 110
    assert len(sentences(corpus, "dev")) == 3 * len(dev)
    assert corpus.counts.sum() == corpus.meta["train"]["n_words"]
    turned = write(tmp_path / "b.txt", "\n\n".join(reversed(texts)))
    other, _ = build(tmp_path / "other", turned, dev_share=0.2, n_process=2)
    assert documents(other, "dev") == dev


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_text_without_empty_lines_is_held_out_in_parts(tmp_path, end):
    lines = [f"d{n} is a line." for n in range(4000)]
    path = write(tmp_path / "a.txt", end.join(lines) + end + end)
    corpus, _ = build(tmp_path / "corpus", path, dev_share=0.2)
    train, dev = documents(corpus, "train"), documents(corpus, "dev")
    assert not train & dev and train | dev == set(range(4000))
    assert 0.1 < len(dev) / 4000 < 0.3
    assert {n // 20 for n in dev}.isdisjoint(n // 20 for n in train)
    # One of many short files is a document.
    write(tmp_path / "folder" / "a.txt", "\n".join(lines))
    write(tmp_path / "folder" / "b.txt", "d4000 is another.")
    corpus, _ = build(tmp_path / "second", tmp_path / "folder", dev_share=0.2)
    for part in ("train", "dev"):
        assert len(documents(corpus, part) & set(range(4000))) in (0, 4000)


def test_held_out_everywhere_the_same():
    chosen = [n for n in range(40) if chunks.is_held_out(f"d{n}", 0.2)]
    assert chosen == [3, 10, 14, 15, 25, 28, 29, 30]


def test_held_out_is_given(tmp_path):
    path = write_text(tmp_path / "a.txt")
    dev = write(tmp_path / "dev.txt", TEXT)
    corpus, _ = build(tmp_path / "corpus", path, dev_text=[str(dev)], dev_share=0.5)
    assert len(sentences(corpus)) == 90
    assert sentences(corpus, "dev") == by_spacy(TEXT.split("\n"))
    assert dict(zip(corpus.words, corpus.counts))["Snow"] == 0


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize("n_documents", [1, 30])
def test_text_to_hold_out_without_words_is_refused(tmp_path, text, n_documents):
    path = write_text(tmp_path / "a.txt", n_documents=n_documents)
    dev = write(tmp_path / "dev.txt", text)
    with pytest.raises(ValueError, match=r"dev\.txt: found no words to evaluate on$"):
        build(tmp_path / "corpus", path, dev_text=[str(dev)])
    assert not (tmp_path / "corpus").exists()  # found before the rest was read


def few_documents(folder, kind):
    """Six documents, none of which is held out by itself."""
    texts = [f"d{n} begins. " + "And goes on. " * n for n in range(6)]
    assert not any(chunks.is_held_out(t[:100], 1e-4) for t in texts)
    if kind == "spacy":
        nlp = spacy.blank("en")
        docs = DocBin(docs=[nlp(text) for text in texts])
        return write(folder / "a.spacy", docs.to_bytes()), texts
    if kind == "files":
        for n, text in enumerate(texts):
            write(folder / "texts" / f"{n}.txt", text)
        return folder / "texts", texts
    return write(folder / "a.txt", "\n\n".join(texts)), texts


@pytest.mark.parametrize("kind", ["text", "files", "spacy"])
def test_of_few_documents_one_is_held_out(tmp_path, monkeypatch, kind):
    path, texts = few_documents(tmp_path, kind)
    corpus, new = build(tmp_path / "corpus", path, dev_share=1e-4)
    assert new and not build(tmp_path / "corpus", path, dev_share=1e-4)[1]
    assert documents(corpus, "dev") == {0}  # the shortest
    assert documents(corpus, "train") == {1, 2, 3, 4, 5}
    # As if the two parts had been given.
    train = write(tmp_path / "train.txt", "\n\n".join(texts[1:]))
    dev = write(tmp_path / "dev.txt", texts[0])
    given, _ = build(tmp_path / "given", train, dev_text=[str(dev)])
    for part in ("train", "dev"):
        assert sentences(corpus, part) == sentences(given, part)
        assert corpus.meta[part] == given.meta[part]
        found, expected = getattr(corpus, part).blocks, getattr(given, part).blocks
        assert found.tolist() == expected.tolist()
    counts = [dict(zip(c.words, c.counts.tolist())) for c in (corpus, given)]
    assert counts[0] == counts[1]
    # In as many processes as wanted.
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 20)
    monkeypatch.setattr(tokenized_chunks, "FEW_CHUNKS", 1)
    for n in (1, 2):
        build(tmp_path / str(n), path, dev_share=1e-4, n_process=n)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_the_document_nearest_to_the_share_is_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_writer, "MAX_BLOCK", 4)
    monkeypatch.setattr(chunks, "is_held_out", lambda text, share: False)
    path, texts = few_documents(tmp_path, "text")
    corpus, _ = build(tmp_path / "corpus", path, dev_share=0.2)
    assert documents(corpus, "dev") == {3}
    for stream in (corpus.train, corpus.dev):
        assert stream.blocks[0] == 0 and not stream.tokens[stream.blocks].any()
    train, dev = (corpus.meta[part] for part in ("train", "dev"))
    assert (train["n_documents"], dev["n_documents"]) == (5, 1)
    for part, stream in ((train, corpus.train), (dev, corpus.dev)):
        assert (part["n_words"], part["n_sentences"]) == (
            (stream.n_words, stream.n_sentences)
        )


def test_one_document_is_trained_on(tmp_path):
    path = write(tmp_path / "a.txt", "One document. It goes on.\n")
    corpus, _ = build(tmp_path / "corpus", path, dev_share=1e-9)
    assert not len(corpus.dev.tokens) and corpus.meta["train"]["n_words"] == 7
    assert not build(tmp_path / "corpus", path, dev_share=1e-9)[1]


def test_held_out_text_that_an_older_version_left_out_is_added(tmp_path):
    path, _ = few_documents(tmp_path, "text")
    folder = tmp_path / "corpus"
    build(folder, path, dev_share=1e-4)
    meta = json.loads((folder / corpus_module.META).read_text("utf8"))
    meta["dev"]["n_words"] = 0
    (folder / corpus_module.META).write_text(json.dumps(meta), "utf8")
    corpus, new = build(folder, path, dev_share=1e-4)
    assert new and documents(corpus, "dev") == {0}


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", "words", "tokens"])
def test_a_broken_corpus_is_as_none(tmp_path, damage):
    path = write_text(tmp_path / "a.txt")
    folder = tmp_path / "corpus"
    build(folder, path, dev_share=0.1)
    before = files(folder)
    if damage in ("words", "tokens"):
        name = {"words": corpus_module.WORDS, "tokens": "dev.tokens"}[damage]
        (folder / name).unlink()
    else:
        (folder / corpus_module.META).write_text(damage, "utf8")
    assert build(folder, path, dev_share=0.1)[1]
    assert files(folder) == before
