"""Test the attributes of tokens: their values, and that access to one token needs no
work on the other tokens of its doc."""

import tracemalloc

import numpy as np
import pytest
import spacy
from helpers.pipelines import pipeline_with_surprisal
from spacy.tokens import Doc

ATTRIBUTES = ["elmo", "elmo_layers", "elmo_surprisal"]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilm")
    return pipeline_with_surprisal(folder, [f"w{n}" for n in range(27)])


def make_doc(nlp, n_tokens):
    return nlp(Doc(nlp.vocab, words=[f"w{n % 40}" for n in range(n_tokens)]))


def test_tokens_have_their_row_of_the_doc(nlp):
    doc = make_doc(nlp, 60)
    assert doc._.elmo_surprisal.shape == (60, 2) and (doc._.elmo_surprisal > 0).all()
    np.testing.assert_array_equal(doc._.elmo.surprisal, doc._.elmo_surprisal)
    for token in (doc[0], doc[25], doc[-1]):
        row = doc._.elmo_surprisal[token.i]
        np.testing.assert_array_equal(token._.elmo_surprisal, row)
        np.testing.assert_array_equal(token._.elmo_layers, doc._.elmo.layers[token.i])
        np.testing.assert_allclose(token._.elmo, doc.tensor[token.i], atol=1e-6)


def peak_memory(token, attribute):
    """Return the peak memory, in bytes, of getting an attribute. It shows whether the
    whole doc is processed."""
    token._.get(attribute)  # the first access may fill spaCy's own caches
    tracemalloc.start()
    try:
        token._.get(attribute)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.slow
def test_access_to_a_token_does_not_depend_on_the_length_of_its_doc(nlp, attribute):
    short, long = make_doc(nlp, 20), make_doc(nlp, 4000)
    limit = 2 * peak_memory(short[10], attribute)
    assert peak_memory(long[2000], attribute) < limit


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_a_changed_token_is_refused_and_others_are_not(nlp, attribute):
    doc = make_doc(nlp, 20)
    expected = doc[19]._.get(attribute)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[10], ["w", "10"], heads=[doc[9], doc[9]])
    with pytest.raises(ValueError, match="retokenized"):
        doc[5]._.get(attribute)
    np.testing.assert_array_equal(doc[19]._.get(attribute), expected)


def test_surprisal_that_was_not_computed_is_refused(nlp):
    other = spacy.blank("en")
    other.add_pipe("elmo")
    doc = other("Some words")
    for owner in (doc, doc[1]):
        with pytest.raises(ValueError, match="set surprisal of the 'elmo' component"):
            owner._.get("elmo_surprisal")
