"""Run the commands of spaCy, such as train and debug, on pipelines with `elmo`."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from helpers.command import run_spacy
from helpers.pipelines import (
    TEXTS,
    elmo,
    embed_and_encode,
    get_bilm,
    mean_of_layers,
    ner,
    paths,
    predictions,
    same_weights,
    save_bilm,
    tagger,
    tok2vec_with_elmo,
    train,
    train_shared,
    vectors,
    write_config,
    write_short,
)
from spacy.tokens import DocBin
from thinc.api import Config

from spacy_elmo.bilm import load_bilm
from spacy_elmo.layers.mix import get_mix
from spacy_elmo.pipeline.factory import DEFAULT_CONFIG

SCORES = {"tagger": "tag_acc", "parser": "dep_las", "ner": "ents_f"}


def check_scores(path, *names):
    """Assert that a pipeline makes no mistakes on its five training sentences."""
    performance = srsly.read_json(path / "meta.json")["performance"]
    assert {name: performance[SCORES[name]] for name in names} == dict.fromkeys(
        names, 1.0
    )


def gammas(nlp, name):
    nodes = nlp.get_pipe(name).model.walk()
    return [get_mix(node)[1] for node in nodes if node.name == "elmo-mix"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return train_shared(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, shared):
    """Fine-tune `elmo` together with `ner`.

    The pipeline also has the tagger of the pipeline `shared`. Its listener is replaced
    by a copy of the biLM of that pipeline.
    RETURNS (tuple[Path, BiLM]): The folder of the pipeline, and the biLM before
        training.
    """
    folder = tmp_path_factory.mktemp("tuned")
    bilm = save_bilm(folder / "bilm", seed=1)
    components = {
        "elmo": elmo(bilm=str(bilm), frozen=False),
        "tagger": {
            "source": str(shared.path),
            "replace_listeners": ["model.tok2vec.elmo"],
        },
        "ner": ner(tok2vec_with_elmo("both")),
    }
    path = train(folder, components, training={"frozen_components": ["tagger"]})
    start = load_bilm(bilm)
    shutil.rmtree(bilm)
    return path, start


# spacy train


@pytest.mark.slow
def test_train_with_a_shared_elmo(shared):
    check_scores(shared.path, "tagger", "parser", "ner")
    nlp = spacy.load(shared.path)
    assert nlp.get_pipe("elmo").listening_components == ["tagger", "parser", "ner"]
    for name, n_mixes in {"tagger": 1, "parser": 1, "ner": 2}.items():
        found = gammas(nlp, name)
        assert len(found) == n_mixes and 1.0 not in found  # all gammas have changed


@pytest.mark.slow
def test_train_does_not_change_a_frozen_bilm(shared):
    nlp = spacy.load(shared.path)
    assert same_weights(get_bilm(nlp), shared.bilm)
    np.testing.assert_allclose(vectors(nlp), mean_of_layers(shared.bilm), atol=1e-5)


@pytest.mark.slow
def test_train_changes_a_bilm_that_is_not_frozen(tuned):
    path, start = tuned
    check_scores(path, "ner")
    found, before = get_bilm(spacy.load(path)).state_dict(), start.state_dict()
    same = [name for name in before if np.array_equal(found[name], before[name])]
    assert same == []
    assert srsly.read_json(path / "meta.json")["performance"]["elmo_loss"] > 0


@pytest.mark.slow
def test_train_with_a_sourced_component_whose_listener_is_replaced(tuned, shared):
    path, _ = tuned
    block = Config().from_disk(path / "config.cfg")["components"]["tagger"]["model"]
    name = "spacy-elmo.ElmoLayers.v1"
    assert block["tok2vec"]["elmo"]["@architectures"] == name
    # The tagger predicts the same as in its first pipeline, although this pipeline has
    # another `elmo`.
    nlp, source = spacy.load(path), spacy.load(shared.path)
    assert nlp.get_pipe("elmo").listening_components == ["ner"]
    for mine, theirs in zip(nlp.pipe(TEXTS), source.pipe(TEXTS)):
        assert [t.tag_ for t in mine] == [t.tag_ for t in theirs]
        assert not np.allclose(mine.tensor, theirs.tensor, atol=1e-3)
    check_scores(path, "tagger")


@pytest.mark.slow
@pytest.mark.parametrize("annotating", [[], ["elmo"]])
def test_train_with_a_sourced_elmo_that_spacy_freezes(tuned, tmp_path, annotating):
    # The sourced `elmo` has frozen = false, so only frozen_components freezes it.
    source, _ = tuned
    components = {
        "elmo": {"source": str(source)},
        "tagger": tagger(tok2vec_with_elmo("input")),
        "ner": ner(tok2vec_with_elmo("both")),
    }
    training = {"frozen_components": ["elmo"], "annotating_components": annotating}
    path = train(tmp_path / "new", components, training=training)
    check_scores(path, "tagger", "ner")
    nlp = spacy.load(path)
    assert same_weights(get_bilm(nlp), get_bilm(spacy.load(source)))
    assert gammas(nlp, "tagger") != [1.0] and gammas(nlp, "ner") != [1.0]


@pytest.mark.slow
def test_train_beside_tok2vec_and_with_a_bilm_named_for_initialize(tmp_path):
    bilm = save_bilm(tmp_path / "bilm", seed=2)
    components = {
        "elmo": elmo(),
        "tok2vec": {
            "factory": "tok2vec",
            "model": {"@architectures": "spacy.Tok2Vec.v2", **embed_and_encode("NORM")},
        },
        "tagger": tagger(tok2vec_with_elmo("input")),
        "ner": ner({"@architectures": "spacy.Tok2VecListener.v1", "width": 16}),
    }
    path = train(
        tmp_path / "beside",
        components,
        bilm=bilm,
        initialize={"components": {"elmo": {"bilm": "${paths.bilm}"}}},
    )
    check_scores(path, "tagger", "ner")
    start = load_bilm(bilm)
    shutil.rmtree(bilm)
    nlp = spacy.load(path)
    assert same_weights(get_bilm(nlp), start)
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]
    assert nlp.get_pipe("tok2vec").listening_components == ["ner"]
    # Both components set doc.tensor. It has the values of tok2vec, which comes last,
    # but doc._.elmo still has those of elmo.
    for doc in nlp.pipe(TEXTS):
        assert doc.tensor.shape == (len(doc), 16)
        assert doc._.elmo.vectors.shape == (len(doc), 12)


# Configs


@pytest.mark.slow
def test_init_fill_config_adds_our_defaults(tmp_path):
    text = write_short("spacy-elmo.ElmoTok2Vec.v1", "window = 100\noverlap = 20")
    (tmp_path / "partial.cfg").write_text(
        text
        + """
[components.tagger.model.tok2vec.elmo]
@architectures = "spacy-elmo.ElmoListener.v1"

[components.tagger.model.tok2vec.mix]
@architectures = "spacy-elmo.ElmoMix.v1"
l2 = 0.001
"""
    )
    run_spacy("init", "fill-config", tmp_path / "partial.cfg", tmp_path / "full.cfg")
    components = Config().from_disk(tmp_path / "full.cfg")["components"]
    given = {"factory": "elmo", "window": 100, "overlap": 20}
    assert components["elmo"] == {**DEFAULT_CONFIG, **given}
    tok2vec = components["tagger"]["model"]["tok2vec"]
    assert tok2vec["elmo"]["upstream"] == "*"
    assert tok2vec["mix"] == {
        "@architectures": "spacy-elmo.ElmoMix.v1",
        "layer_norm": True,
        "dropout": None,
        "l2": 0.001,
        "fixed": None,
        "init_weights": None,
        "init_gamma": 1.0,
    }


@pytest.fixture
def config(tmp_path):
    components = {
        "elmo": elmo(bilm="${paths.bilm}"),
        "tagger": tagger(tok2vec_with_elmo("both")),
    }
    return write_config(tmp_path / "config", components)


@pytest.mark.slow
def test_debug_config_accepts_our_configs_and_refuses_unknown_settings(
    config, tmp_path
):
    bilm = save_bilm(tmp_path / "bilm")
    ours = Path(__file__).parents[2] / "configs" / "parsing_elmo.cfg"
    for path in (config, ours):
        assert "Config is valid" in run_spacy("debug", "config", path, *paths(config))
    with pytest.raises(AssertionError, match=r"elmo.*\n?.*\n?.*windw"):
        options = ["--components.elmo.windw", "3", *paths(config, bilm)]
        run_spacy("debug", "config", config, *options)


@pytest.mark.slow
def test_debug_model_shows_our_layers(config, tmp_path):
    steps = ["--print-step0", "--print-step1", "--print-step2", "--print-step3"]
    facts = ["--dimensions", "--parameters", "--gradients", "--attributes"]
    options = paths(config, save_bilm(tmp_path / "bilm"))
    text = run_spacy("debug", "model", config, "tagger", *steps, *facts, *options)
    assert "Initialized the model with the training corpus" in text
    assert "model looks good" in text
    before, initialized, updated, predicted = re.split(r"=+ STEP \d", text)[1:]
    assert "param gamma: None" in before
    for part in (initialized, updated):
        listener = part.partition("'elmo-listener'")[2].partition("Layer")[0]
        assert "dim nO: 12" in listener and "dim nL: 3" in listener
    assert "param gamma: (1,) - sample: [1.]" in initialized
    assert "grad gamma: (1,)" in updated and "grad w: (3,)" in updated
    assert "array(" in predicted
    # `debug model` also works for the component `elmo`.
    text = run_spacy("debug", "model", config, "elmo", *steps, *facts, *options)
    assert "dim nO: 12" in text and "model looks good" in text


# Pipelines


@pytest.mark.slow
def test_assemble_makes_a_pipeline_from_a_bilm(tmp_path):
    folder = save_bilm(tmp_path / "bilm", seed=3)
    bilm = load_bilm(folder)
    config = write_config(tmp_path / "config", {"elmo": elmo(bilm="${paths.bilm}")})
    run_spacy("assemble", config, tmp_path / "pipeline", "--paths.bilm", folder)
    shutil.rmtree(folder)
    nlp = spacy.load(tmp_path / "pipeline")
    assert same_weights(get_bilm(nlp), bilm)
    np.testing.assert_allclose(vectors(nlp), mean_of_layers(bilm), atol=1e-5)


@pytest.mark.slow
def test_evaluate_gives_all_scores(shared, tmp_path):
    docs = shared.path.parent / "docs.spacy"
    run_spacy("evaluate", shared.path, docs, "--output", tmp_path / "scores.json")
    scores = srsly.read_json(tmp_path / "scores.json")
    assert {name: scores[name] for name in SCORES.values()} == dict.fromkeys(
        SCORES.values(), 1.0
    )


@pytest.mark.slow
def test_benchmark_speed_prints_a_speed(shared):
    docs = shared.path.parent / "docs.spacy"
    options = ["--batches", "30", "--warmup", "1", "--batch-size", "5"]
    text = run_spacy("benchmark", "speed", shared.path, docs, *options)
    mean = re.search(r"Mean: ([\d.]+) words/s", text)
    assert mean and float(mean[1]) > 0


@pytest.mark.slow
def test_apply_writes_docs_with_elmo_data(shared, tmp_path):
    source, out = tmp_path / "texts.jsonl", tmp_path / "docs.spacy"
    srsly.write_jsonl(source, [{"text": text} for text in TEXTS])
    run_spacy("apply", shared.path, source, out)
    nlp = spacy.load(shared.path)
    docs = list(DocBin().from_disk(out).get_docs(nlp.vocab))
    assert [doc.to_json() for doc in docs] == predictions(nlp)
    for doc, expected in zip(docs, nlp.pipe(TEXTS)):
        np.testing.assert_allclose(doc._.elmo.layers, expected._.elmo.layers, atol=1e-5)
