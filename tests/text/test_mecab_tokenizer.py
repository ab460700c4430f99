"""Tokenize Korean into morphemes with python-mecab-ko."""

import pickle

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import DocBin

pytest.importorskip("mecab")

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-elmo.MecabTokenizer.v1"}}}


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("ko", config=CONFIG)


def words(doc):
    return [token.text for token in doc]


def test_particles_and_endings_are_tokens(nlp):
    doc = nlp("눈이 내리면 사과를 먹었다.")
    assert words(doc) == ["눈", "이", "내리", "면", "사과", "를", "먹", "었", "다", "."]
    spaces = [token.text for token in doc if token.whitespace_]
    assert spaces == ["이", "면", "를"]


def test_tags_and_lemmas_are_those_of_the_first_morpheme(nlp):
    doc = nlp("눈물이 고였다.")
    assert [token.tag_ for token in doc] == ["NNG", "JKS", "VV", "EF", "SF"]
    assert [token.pos_ for token in doc] == ["NOUN", "ADP", "VERB", "X", "PUNCT"]
    assert doc[2].lemma_ == "고이"
    assert doc.user_data["full_tags"][2] == "VV+EP"


@given(text=st.text(max_size=40))
@example(text="  앞의 빈칸")
@example(text="뒤의 빈칸 \n")
@example(text="빈칸  둘\t탭\u00a0하나\u3000둘")
@example(text="눈\0이")
@example(text="ABC는 3.14kg, 👨‍👩‍👧 😀ㅋㅋㅋ Ünïcödé")
@example(text="가" * 5000)
def test_the_text_of_the_doc_is_the_text(nlp, text):
    doc = nlp.make_doc(text)
    assert doc.text == text
    assert "" not in words(doc)


def test_spaces_beyond_the_first_are_tokens(nlp):
    doc = nlp("  눈이  온다")
    assert words(doc) == ["  ", "눈", "이", " ", "온다"]
    assert [token.is_space for token in doc] == [True, False, False, True, False]
    assert doc[0].pos_ == doc[3].pos_ == "SPACE"


@pytest.mark.slow
def test_it_can_be_saved_pickled_and_used_in_other_processes(nlp, tmp_path):
    texts = ["눈이 온다.", "배를 탔다."] * 3
    expected = [words(doc) for doc in nlp.pipe(texts)]
    nlp.to_disk(tmp_path)
    for copy in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp))):
        assert [words(doc) for doc in copy.pipe(texts)] == expected
    assert [words(doc) for doc in nlp.pipe(texts, n_process=2)] == expected
    docs = DocBin(docs=nlp.pipe(texts)).get_docs(nlp.vocab)
    assert [words(doc) for doc in docs] == expected
