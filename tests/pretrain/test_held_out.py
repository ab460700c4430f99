"""Hold out documents of a corpus to evaluate on."""

import json
import multiprocessing
import os

import pytest
import spacy
from helpers.corpora import build, by_spacy, sentences, write
from helpers.pretraining import write_text
from spacy.tokens import DocBin

from spacy_elmo.pretrain import corpus as corpus_module
from spacy_elmo.pretrain import corpus_writer
from spacy_elmo.text import chunks, tokenized_chunks

TEXT = "Snow fell. It did not stop!\nDr. Kim's dog (3 kg) left...\n\nThe end?  «Yes.»\n"

N_LINES = 2000


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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
@pytest.mark.slow
def test_a_text_without_empty_lines_is_held_out_in_parts(tmp_path, end):
    lines = [f"d{n} is a line." for n in range(N_LINES)]
    path = write(tmp_path / "a.txt", end.join(lines) + end + end)
    corpus, _ = build(tmp_path / "corpus", path, dev_share=0.2)
    train, dev = documents(corpus, "train"), documents(corpus, "dev")
    assert not train & dev and train | dev == set(range(N_LINES))
    assert 0.1 < len(dev) / N_LINES < 0.3
    assert {n // 20 for n in dev}.isdisjoint(n // 20 for n in train)
    # A short file counts as one document if there are other files.
    write(tmp_path / "folder" / "a.txt", "\n".join(lines))
    write(tmp_path / "folder" / "b.txt", f"d{N_LINES} is another.")
    corpus, _ = build(tmp_path / "second", tmp_path / "folder", dev_share=0.2)
    for part in ("train", "dev"):
        assert len(documents(corpus, part) & set(range(N_LINES))) in (0, N_LINES)


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
    assert not (tmp_path / "corpus").exists()  # the error came before the text was read


def few_documents(folder, kind):
    """Write six documents, none of which is_held_out chooses, and return the path and
    the texts."""
    texts = [f"d{n} begins. " + "And goes on. " * n for n in range(6)]
    assert not any(chunks.is_held_out(t[:100], 1e-4) for t in texts)
    if kind == "spacy":
        nlp = spacy.blank("xx")
        docs = DocBin(docs=[nlp(text) for text in texts])
        return write(folder / "a.spacy", docs.to_bytes()), texts
    if kind == "files":
        for n, text in enumerate(texts):
            write(folder / "texts" / f"{n}.txt", text)
        return folder / "texts", texts
    return write(folder / "a.txt", "\n\n".join(texts)), texts


@pytest.mark.parametrize("kind", ["text", "files", "spacy"])
def test_of_few_documents_one_is_held_out(tmp_path, kind):
    path, texts = few_documents(tmp_path, kind)
    corpus, new = build(tmp_path / "corpus", path, dev_share=1e-4)
    assert new and not build(tmp_path / "corpus", path, dev_share=1e-4)[1]
    assert documents(corpus, "dev") == {0}  # the shortest document
    assert documents(corpus, "train") == {1, 2, 3, 4, 5}
    # The corpus is the same if both texts are given as files.
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["text", "files", "spacy"])
def test_the_number_of_processes_does_not_change_the_files(tmp_path, monkeypatch, kind):
    path, _ = few_documents(tmp_path, kind)
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 20)
    monkeypatch.setattr(tokenized_chunks, "FEW_CHUNKS", 1)
    if hasattr(os, "fork"):  # forked processes need not import spaCy and torch
        context = multiprocessing.get_context("fork")
        monkeypatch.setattr(tokenized_chunks, "get_context", lambda kind: context)
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


def test_of_all_documents_one_is_held_out(tmp_path):
    path, _ = few_documents(tmp_path, "text")
    corpus, _ = build(tmp_path / "corpus", path, dev_share=0.9999)
    assert documents(corpus, "dev") == {0}  # the shortest document
    assert documents(corpus, "train") == {1, 2, 3, 4, 5}
    assert not build(tmp_path / "corpus", path, dev_share=0.9999)[1]


def test_held_out_text_that_an_older_version_left_out_is_added(tmp_path):
    path, _ = few_documents(tmp_path, "text")
    folder = tmp_path / "corpus"
    build(folder, path, dev_share=1e-4)
    meta = json.loads((folder / corpus_module.META).read_text("utf8"))
    meta["dev"]["n_words"] = 0
    (folder / corpus_module.META).write_text(json.dumps(meta), "utf8")
    corpus, new = build(folder, path, dev_share=1e-4)
    assert new and documents(corpus, "dev") == {0}
