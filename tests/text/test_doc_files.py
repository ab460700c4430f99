"""Load and save `.spacy` files."""

import gzip

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo.text.doc_files import load_docs, save_docs


def make_docs():
    nlp = spacy.blank("en")
    docs = [nlp("Snow fell."), nlp("It did not stop.")]
    docs[0].cats = {"weather": 1.0}
    docs[1].user_data["source"] = "diary"
    return docs


def test_saved_docs_are_loaded_in_order(tmp_path):
    save_docs(make_docs(), tmp_path / "a.spacy")
    vocab = Vocab()
    docs = load_docs(tmp_path / "a.spacy", vocab)
    assert [doc.text for doc in docs] == [doc.text for doc in make_docs()]
    assert docs[0].cats == {"weather": 1.0} and docs[0].vocab is vocab
    assert docs[1].user_data["source"] == "diary"


def test_compressed_docs_are_loaded(tmp_path):
    path = tmp_path / "a.spacy.gz"
    path.write_bytes(gzip.compress(DocBin(docs=make_docs()).to_bytes()))
    assert [len(doc) for doc in load_docs(path, Vocab())] == [3, 5]


@pytest.mark.parametrize("data", [None, b"", b"nothing", DocBin().to_bytes()[:-3]])
@pytest.mark.parametrize("name", ["a.spacy", "a.spacy.gz"])
def test_unreadable_files_are_named_in_one_sentence(tmp_path, name, data):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ValueError) as caught:
        load_docs(path, Vocab())
    assert str(caught.value).startswith(f"{path}: cannot be read as a .spacy file (")
    assert "\n" not in str(caught.value)
