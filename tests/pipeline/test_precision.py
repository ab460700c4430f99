"""The setting `precision` of the component."""

import numpy as np
import pytest
import spacy

TEXT = "birds sang . anna cheered ."


def vectors(nlp):
    return nlp(TEXT)._.elmo.layers


def test_int8_is_approximate(make_nlp):
    exact, rounded = vectors(make_nlp()), vectors(make_nlp(precision="int8"))
    assert 0 < np.abs(rounded - exact).max() < 0.1


def test_a_saved_pipeline_keeps_its_precision(make_nlp, tmp_path):
    nlp = make_nlp(precision="int8")
    nlp.to_disk(tmp_path)
    assert (vectors(spacy.load(tmp_path)) == vectors(nlp)).all()


def test_layers_of_another_precision_are_not_taken_from_the_cache(make_nlp, tmp_path):
    cached = {"cache_layers": "always", "cache_folder": str(tmp_path)}
    vectors(make_nlp(precision="int8", **cached))
    assert (vectors(make_nlp(**cached)) == vectors(make_nlp())).all()


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"precision": "int4"}, "precision is 'int4'"),
        ({"precision": "int8", "frozen": False}, "precision 'int8' and frozen = false"),
    ],
)
def test_bad_settings(make_nlp, settings, found):
    with pytest.raises(ValueError, match=found):
        make_nlp(**settings)
