"""Test `_.elmo_similarity`, and `doc._.elmo` as a sequence."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

TEXTS = ["He threw a stick and a stone .", "We should stick to the plan ."]


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture
def docs(make_nlp):
    return list(make_nlp().pipe(TEXTS))


def test_any_two_things_can_be_compared(docs):
    one, two = docs
    items = [one, two, one[1:4], two[2:3], one[3], two[2]]
    for a in items:
        for b in items:
            expected = cosine(mean(a), mean(b))
            assert a._.elmo_similarity(b) == pytest.approx(expected, abs=1e-5)
            assert a._.elmo_similarity(a) == pytest.approx(1)


def mean(item):
    if isinstance(item, Token):
        return item._.elmo
    return item._.elmo if isinstance(item, Span) else item._.elmo.vectors.mean(0)


def test_the_same_spelling_is_not_enough(docs):
    one, two = docs[0][3], docs[1][2]
    assert one.text == two.text and one.similarity(two) == 1.0
    assert one._.elmo_similarity(two) < 1 - 1e-6


def test_zero_vectors_are_similar_to_nothing(make_nlp):
    nlp = make_nlp()
    doc, empty = nlp("a \n b"), nlp("")
    assert doc[1].is_space and doc[1]._.elmo_similarity(doc[0]) == 0.0
    assert doc[1]._.elmo_similarity(doc[1]) == 0.0
    assert doc._.elmo_similarity(empty) == empty._.elmo_similarity(empty) == 0.0
    assert doc[1:1]._.elmo_similarity(doc) == 0.0


def test_huge_and_tiny_vectors_have_a_cosine(docs):
    one, two = docs
    expected = one._.elmo_similarity(two)
    for doc, factor in ((one, 1e30), (two, 1e-30)):
        data = next(v for k, v in doc.user_data.items() if k[1] == "elmo_data")
        data["layers"] = data["layers"] * np.float32(factor)
    assert one._.elmo_similarity(two) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("mix", [None, np.array([0.0, 0.0, 1.0])])
def test_docs_from_a_file_can_be_compared(make_nlp, mix):
    nlp = make_nlp()
    nlp.get_pipe("elmo").mix = mix
    docs = list(nlp.pipe(TEXTS))
    stored = DocBin(docs=docs, store_user_data=True).to_bytes()
    loaded = list(DocBin().from_bytes(stored).get_docs(nlp.vocab))
    expected = docs[0]._.elmo_similarity(docs[1])
    assert loaded[0]._.elmo_similarity(docs[1]) == pytest.approx(expected)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.slow
def test_what_cannot_be_compared_gets_a_sentence(docs, swap):
    blank = spacy.blank("en")
    other = blank.add_pipe("elmo")(blank.make_doc("Some words"))
    cases = [
        (blank.make_doc("words"), ValueError, "this doc has no ELMo vectors"),
        (other[0], ValueError, "different biLMs"),
        ("a text", TypeError, "elmo_similarity got str; expected a Doc, Span or Token"),
    ]
    for bad, kind, message in cases:
        if swap and not isinstance(bad, str):
            with pytest.raises(kind, match=message):
                bad._.elmo_similarity(docs[0])
        else:
            with pytest.raises(kind, match=message):
                docs[0]._.elmo_similarity(bad)


def test_arrays_of_a_gpu_and_of_the_host_can_be_compared(make_nlp, device):
    near, far = make_nlp(), make_nlp(store_layers="cpu")
    one, two = near(TEXTS[0]), far(TEXTS[1])
    with_itself = near(TEXTS[1])
    expected = one._.elmo_similarity(with_itself)
    assert type(expected) is float
    assert one._.elmo_similarity(two) == pytest.approx(expected, abs=1e-5)


# doc._.elmo as a sequence


def test_items_are_the_mixed_vectors_of_tokens(docs):
    doc = docs[0]
    view, vectors = doc._.elmo, doc._.elmo.vectors
    assert len(view) == len(doc)
    for i in (0, 3, -1):
        np.testing.assert_array_equal(view[i], vectors[i])
    for part in (slice(2, 5), slice(-3, None), slice(None, None, 2), slice(5, 2)):
        np.testing.assert_array_equal(view[part], vectors[part])
    np.testing.assert_array_equal(np.stack(list(view)), vectors)
    for i in (len(doc), -len(doc) - 1):
        with pytest.raises(IndexError):
            view[i]


def test_repr_has_shapes_and_the_bilm(make_nlp, tmp_path):
    nlp = make_nlp()
    doc = nlp("Two words")
    found = repr(doc._.elmo)
    source = nlp.get_pipe_config("elmo")["bilm"]
    assert source and found == (
        f"<ELMo of 2 tokens: layers (2, 3, 10), vectors (2, 10), biLM {source}>"
    )
    nlp.to_disk(tmp_path / "saved")
    assert repr(spacy.load(tmp_path / "saved")("Two words")._.elmo) == found
    copy = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert repr(copy._.elmo) == found
    doc = make_nlp(store_layers="none")("Two words")
    assert "layers" not in repr(doc._.elmo) and "vectors (2, 10)" in repr(doc._.elmo)
    plain = Doc(doc.vocab, words=["a"])
    assert repr(plain._.elmo) == "<ELMo of 1 tokens: nothing computed>"
