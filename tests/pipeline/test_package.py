"""Test pipelines that are saved and packaged, and components that are used alone."""

import json
import os

import numpy as np
import pytest
import spacy
import srsly
from helpers.command import run_spacy
from helpers.environments import install_wheel, make_environment
from helpers.pipelines import (
    TEXTS,
    elmo,
    elmo_tok2vec,
    get_bilm,
    make_config,
    make_docs,
    mean_of_layers,
    predictions,
    run_python,
    same_weights,
    save_bilm,
    tagger,
    tok2vec_with_elmo,
    train_shared,
    vectors,
)
from spacy.training import Example

from spacy_elmo import __version__

LISTENERS = ["model.tok2vec.elmo"]
TOK2VECS = {
    "input": tok2vec_with_elmo("input"),
    "output": tok2vec_with_elmo("output"),
    "both": tok2vec_with_elmo("both"),
    "alone": elmo_tok2vec(),
    "defaults": {"@architectures": "spacy-elmo.Tok2VecWithElmo.v1"},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_shared(tmp_path_factory.mktemp("shared"))


# In a new environment


LOAD = f"""
import json, spacy
docs = list(spacy.load("en_tiny").pipe({TEXTS!r}))
print(json.dumps([[doc.to_json(), doc.tensor.tolist()] for doc in docs]))
"""


@pytest.mark.slow
def test_a_package_works_in_a_new_environment(trained, tmp_path):
    run_spacy("package", trained.path, tmp_path, "--build", "wheel", "--name", "tiny")
    (wheel,) = tmp_path.rglob("*.whl")
    meta = srsly.read_json(tmp_path / "en_tiny-0.0.0" / "meta.json")
    ours = [name for name in meta["requirements"] if name.startswith("spacy-elmo")]
    assert len(ours) == 1 and f">={__version__}" in ours[0]

    python = make_environment(tmp_path / "env", with_project=True)
    install_wheel(python, wheel)
    empty = tmp_path / "empty"
    empty.mkdir()
    found = json.loads(run_python("-c", LOAD, python=python, cwd=empty))
    nlp = spacy.load(trained.path)
    assert [doc for doc, _ in found] == predictions(nlp)
    arrays = np.concatenate([array for _, array in found])
    np.testing.assert_allclose(arrays, vectors(nlp), atol=1e-5)


# Saved and loaded, after the source of the biLM was deleted


@pytest.mark.slow
@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_a_pipeline_can_be_saved_and_loaded(trained, tmp_path, way):
    nlp = spacy.load(trained.path)
    if way == "disk":
        nlp.to_disk(tmp_path)
        loaded = spacy.load(tmp_path)
    else:
        loaded = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert same_weights(get_bilm(loaded), trained.bilm)
    np.testing.assert_allclose(vectors(loaded), mean_of_layers(trained.bilm), atol=1e-5)
    assert predictions(loaded) == predictions(nlp)


@pytest.mark.slow
def test_a_loaded_pipeline_can_be_initialized_without_its_source(trained):
    nlp = spacy.load(trained.path)
    nlp.initialize(lambda: examples(nlp))
    assert same_weights(get_bilm(nlp), trained.bilm)


def examples(nlp):
    return [Example(nlp.make_doc(doc.text), doc) for doc in make_docs()]


# Parts of a pipeline


def tok2vec_output(nlp, docs):
    model = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    return np.concatenate(model.predict(docs))


@pytest.mark.parametrize("kind", ["both", "input", "output", "alone"])
@pytest.mark.slow
def test_replace_listeners_changes_no_vector(kind, tmp_path):
    bilm = str(save_bilm(tmp_path / "bilm"))
    components = {"elmo": elmo(bilm=bilm), "tagger": tagger(TOK2VECS[kind])}
    nlp = spacy.util.load_model_from_config(make_config(components), auto_fill=True)
    nlp.initialize(lambda: examples(nlp))
    before = tok2vec_output(nlp, [nlp(text) for text in TEXTS])
    nlp.replace_listeners("elmo", "tagger", LISTENERS)
    nlp.remove_pipe("elmo")  # the tagger has to work without it
    os.rename(bilm, tmp_path / "elsewhere")
    nlp.to_disk(tmp_path / "pipeline")
    copies = [nlp, spacy.load(tmp_path / "pipeline")]
    copies.append(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()))
    for copy in copies:
        assert copy.pipe_names == ["tagger"]
        after = tok2vec_output(copy, [copy(text) for text in TEXTS])
        np.testing.assert_allclose(after, before, atol=1e-5)


@pytest.mark.slow
def test_replace_listeners_keeps_predictions_and_settings(trained, tmp_path):
    nlp = spacy.load(trained.path, config={"components.elmo.window": 200})
    expected = predictions(nlp)
    for name in ("tagger", "parser", "ner"):
        nlp.replace_listeners("elmo", name, LISTENERS)
    assert nlp.get_pipe("elmo").listening_components == []
    nlp.to_disk(tmp_path)
    alone = spacy.load(tmp_path, exclude=["elmo"])
    assert predictions(nlp) == predictions(alone) == expected
    layers = alone.config["components"]["ner"]["model"]["tok2vec"]["elmo"]
    assert layers["window"] == 200 and layers["frozen"] is True


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["tagger", "parser", "ner"])
def test_components_predict_the_same_without_elmo_before_them(trained, kept):
    nlp = spacy.load(trained.path)
    with nlp.select_pipes(enable=["elmo", kept]):
        expected = predictions(nlp)
    with nlp.select_pipes(enable=[kept]):
        assert predictions(nlp) == expected
        assert not len(nlp(TEXTS[0]).tensor)  # elmo has not run
    # The result is the same if the other components are disabled by spacy.load.
    assert predictions(spacy.load(trained.path, enable=[kept])) == expected


@pytest.mark.slow
def test_components_work_with_elmo_disabled(trained):
    expected = predictions(spacy.load(trained.path))
    nlp = spacy.load(trained.path, disable=["elmo"])
    assert "elmo" not in nlp.pipe_names and predictions(nlp) == expected
    nlp.enable_pipe("elmo")
    assert predictions(nlp) == expected
    np.testing.assert_allclose(vectors(nlp), mean_of_layers(trained.bilm), atol=1e-5)
    docs = nlp.pipe(TEXTS, disable=["elmo"])
    assert [doc.to_json() for doc in docs] == expected


@pytest.mark.slow
def test_components_can_be_excluded(trained):
    nlp = spacy.load(trained.path, exclude=["tagger", "parser", "ner"])
    np.testing.assert_allclose(vectors(nlp), mean_of_layers(trained.bilm), atol=1e-5)
    # A listener raises an error if its elmo was not loaded.
    nlp = spacy.load(trained.path, exclude=["elmo"])
    with pytest.raises(ValueError, match="nothing to listen to") as caught:
        nlp(TEXTS[0])
    assert "\n" not in str(caught.value)
