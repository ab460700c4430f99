"""Test that components learn from `elmo`, and that a frozen biLM does not change."""

import copy
import pickle

import numpy as np
import pytest
import spacy
import torch
from helpers.tasks import (
    ENCODERS,
    GOLD,
    bilm_of,
    elmo_alone,
    learn,
    make_nlp,
    mixes_of,
    save_tiny,
    train,
    weights_of,
    with_elmo,
    wrong,
)
from spacy import registry
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_elmo.layers.elmo_model import ElmoModel
from spacy_elmo.layers.mix import get_mix
from spacy_elmo.layers.settings import EncodingSettings
from spacy_elmo.pipeline import layer_source
from spacy_elmo.pipeline.layer_source import LayerSource
from spacy_elmo.pipeline.storage_settings import StorageSettings


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilm"))


# Tasks learn


@pytest.mark.parametrize("name", GOLD)
@pytest.mark.slow
def test_tasks_learn_what_only_elmo_can_tell_them(bilm, name):
    nlp, examples = make_nlp(bilm, {name: with_elmo()})
    assert wrong(nlp, examples, name)
    learn(nlp, examples, [name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tagger", "ner"])
@pytest.mark.parametrize("where", ["output", "both"])
def test_tasks_learn_with_elmo_at_their_output(bilm, name, where):
    nlp, examples = make_nlp(bilm, {name: with_elmo(where)})
    learn(nlp, examples, [name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tagger", "parser", "textcat", "spancat"])
def test_tasks_learn_from_elmo_alone(bilm, name):
    nlp, examples = make_nlp(bilm, {name: elmo_alone()})
    learn(nlp, examples, [name])


@pytest.mark.parametrize("where", ["input", "both"])
@pytest.mark.parametrize("encode", ENCODERS)
def test_encoders_of_spacy_work_with_elmo(bilm, encode, where):
    tok2vec = with_elmo(where, embed="characters", encode=encode)
    nlp, examples = make_nlp(bilm, {"tagger": tok2vec})
    width = nlp.get_pipe("tagger").model.get_ref("tok2vec").get_dim("nO")
    assert width == (16 if where == "input" else 16 + 12)
    learn(nlp, examples, ["tagger"])


@pytest.mark.parametrize("encode", ["maxout", "maxout v1"])
@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_docs_of_a_batch_do_not_see_each_other(bilm, encode, where):
    nlp, examples = make_nlp(bilm, {"tagger": with_elmo(where, encode=encode)})
    tok2vec = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    docs = [example.predicted for example in examples]
    together = tok2vec.predict(docs)
    for doc, found in zip(docs, together):
        np.testing.assert_allclose(found, tok2vec.predict([doc])[0], atol=1e-5)


@pytest.mark.slow
def test_a_task_can_have_a_separate_bilm(bilm):
    own = {"@architectures": "spacy-elmo.ElmoLayers.v1", "bilm": bilm}
    tasks = {"tagger": with_elmo(elmo=own), "senter": elmo_alone(elmo=own)}
    nlp, examples = make_nlp(bilm, tasks)
    assert nlp.get_pipe("elmo").listening_components == []
    learn(nlp, examples, ["tagger", "senter"])


@pytest.mark.slow
def test_tasks_share_one_elmo_and_learn_separate_mixes(bilm):
    tasks = {"tagger": with_elmo("both"), "parser": with_elmo(), "ner": elmo_alone()}
    nlp, examples = make_nlp(bilm, tasks)
    assert nlp.get_pipe("elmo").listening_components == list(tasks)
    learn(nlp, examples, tasks)
    mixes = [get_mix(mix) for name in tasks for mix in mixes_of(nlp, name)]
    assert len(mixes) == 4
    for s, _ in mixes:
        assert sum(s) == pytest.approx(1)
        assert max(s) - min(s) > 0.01
    assert len({tuple(s) for s, _ in mixes}) == 4
    assert len({gamma for _, gamma in mixes}) == 4


@pytest.mark.slow
def test_a_shared_tok2vec_can_listen_to_elmo(bilm):
    """Train elmo -> tok2vec -> tagger and senter. Gradients arrive at `elmo` only after
    the update of tok2vec."""
    name = "spacy.Tok2VecListener.v1"
    listener = {"@architectures": name, "width": 16, "upstream": "tok2vec"}
    tasks = {"tagger": listener, "senter": listener}
    nlp, examples = make_nlp(bilm, {}, frozen=False)
    nlp.add_pipe("tok2vec", config={"model": with_elmo()})
    for task, tok2vec in tasks.items():
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
        nlp.add_pipe(task, config={"model": model})
    nlp.initialize(lambda: examples)
    before = weights_of(nlp)
    learn(nlp, examples, tasks)
    assert all((before[key] != w).any() for key, w in weights_of(nlp).items())


BAG = {
    "@architectures": "spacy.TextCatBOW.v3",
    "exclusive_classes": True,
    "length": 64,
    "ngram_size": 1,
    "no_output_layer": False,
}
LOGISTIC = {"@layers": "spacy.LinearLogistic.v1", "nO": 2}
MODELS = [
    ("textcat", {"@architectures": "spacy.TextCatEnsemble.v2", "linear_model": BAG}),
    ("textcat", {"@architectures": "spacy.TextCatCNN.v2", "exclusive_classes": True}),
    ("span_finder", {"@architectures": "spacy.SpanFinder.v1", "scorer": LOGISTIC}),
]


@pytest.mark.parametrize("name, model", MODELS)
@pytest.mark.parametrize("tok2vec", [with_elmo("both"), elmo_alone()])
def test_models_of_spacy_accept_a_width_that_is_known_late(bilm, name, model, tok2vec):
    nlp, examples = make_nlp(bilm, {})
    nlp.add_pipe(name, config={"model": {**model, "tok2vec": tok2vec}})
    nlp.initialize(lambda: examples)
    losses = train(nlp, examples, 50)
    assert losses[-1][name] < 0.5 * losses[0][name]


def test_a_width_that_does_not_depend_on_the_bilm_is_known_at_once():
    """Check the width before initialization, which spaCy's EntityLinker needs."""
    for where, width in (("input", 16), ("output", None), ("both", None)):
        model = registry.resolve({"tok2vec": with_elmo(where)})["tok2vec"]
        assert model.maybe_get_dim("nO") == width


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.slow
def test_training_on_docs_without_words(bilm, frozen):
    tasks = {"tagger": with_elmo("both"), "ner": elmo_alone()}
    nlp, examples = make_nlp(bilm, tasks, frozen=frozen)
    empty = Example.from_dict(Doc(nlp.vocab), {})
    space = Example.from_dict(Doc(nlp.vocab, words=["\n"]), {"tags": ["NOUN"]})
    for batch in ([empty], [space], [empty, space], [space, examples[0], empty]):
        train(nlp, batch, 2)
    assert len(nlp("")) == 0
    assert "elmo" in nlp.get_pipe("elmo").update([])
    learn(nlp, examples, tasks)


# A frozen biLM does not change


def test_a_frozen_bilm_does_not_change(bilm):
    nlp, examples = make_nlp(bilm, {"tagger": with_elmo("both"), "ner": elmo_alone()})
    before = weights_of(nlp)
    elmo = nlp.get_pipe("elmo")
    optimizer = Adam(0.05, L2=0.1, use_averages=True)
    losses = train(nlp, examples, 5, optimizer=optimizer)
    elmo.finish_update(optimizer)
    assert [step["elmo"] for step in losses] == [0.0] * 5
    assert all(torch.equal(before[key], w) for key, w in weights_of(nlp).items())
    assert all(weight.grad is None for weight in bilm_of(nlp).parameters())
    models = [nlp.get_pipe(name).model for name in ("tagger", "ner")]
    learned = {
        (node.id, name)
        for model in models
        for node in model.walk()
        for name in node.param_names
    }
    for state in (optimizer.mom1, optimizer.mom2, optimizer.averages):
        assert state and set(state) <= learned
    # Gradients that were set by other code do not change the biLM either.
    for weight in bilm_of(nlp).parameters():
        weight.grad = torch.ones_like(weight)
    elmo.finish_update(optimizer)
    elmo.model.finish_update(optimizer)
    assert all(torch.equal(before[key], w) for key, w in weights_of(nlp).items())


def test_the_separate_bilm_of_a_task_changes_only_if_not_frozen(bilm):
    own = {"@architectures": "spacy-elmo.ElmoLayers.v1", "bilm": bilm}
    for frozen in (True, False):
        tok2vec = elmo_alone(elmo={**own, "frozen": frozen})
        nlp, examples = make_nlp(bilm, {"tagger": tok2vec})
        (node,) = (n for n in nlp.get_pipe("tagger").model.walk() if n.name == "elmo")
        weights = list(node.shims[0].bilm.parameters())
        before = [weight.detach().clone() for weight in weights]
        train(nlp, examples, 2)
        same = [torch.equal(old, new) for old, new in zip(before, weights)]
        assert same == [frozen] * len(same)
        assert all(weight.grad is None for weight in weights)


def test_components_that_spacy_freezes_get_no_gradients(bilm):
    nlp, examples = make_nlp(bilm, {"tagger": with_elmo("both")}, frozen=False)
    losses = train(nlp, examples, 5, exclude=["elmo"])
    assert losses[-1]["tagger"] < losses[0]["tagger"]
    assert all(weight.grad is None for weight in bilm_of(nlp).parameters())


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.slow
def test_initializing_again_starts_from_the_same_weights(bilm, own):
    nlp, examples = make_nlp(
        bilm if own else None, {"tagger": with_elmo()}, frozen=False
    )
    before = weights_of(nlp)
    train(nlp, examples, 4)
    assert not all(torch.equal(before[key], w) for key, w in weights_of(nlp).items())
    nlp.initialize(lambda: examples)
    assert all(torch.equal(before[key], w) for key, w in weights_of(nlp).items())


# Layers that docs do not store


def test_predictions_do_not_depend_on_how_many_layers_are_remembered(
    bilm, monkeypatch, encoded
):
    nlp, examples = make_nlp(bilm, {"tagger": with_elmo()}, store_layers="none")
    texts = [example.reference.text for example in examples]
    expected = [nlp(text).to_json() for text in texts]
    encoded.clear()
    assert [doc.to_json() for doc in nlp.pipe(texts)] == expected
    assert sum(encoded) == 3  # once per doc: the tagger uses the layers of elmo
    monkeypatch.setattr(layer_source, "MAX_RECENT_TOKENS", 6)
    encoded.clear()
    assert [doc.to_json() for doc in nlp.pipe(texts)] == expected
    assert sum(encoded) == 3 + 2  # only the last doc, with 5 tokens, was remembered


def test_remembered_layers_are_bounded(bilm, monkeypatch):
    monkeypatch.setattr(layer_source, "MAX_RECENT_TOKENS", 20)
    source = LayerSource(ElmoModel(bilm, EncodingSettings()), StorageSettings())
    source.n_recent = 4
    for number in range(10):
        layers = np.zeros((7, 3, 12), dtype="float32")
        source.remember("weights", bytes([number % 9]), layers)
        assert source.n_recent_tokens == min(7 * (number + 1), 14)
    for number in range(10):
        source.remember("weights", bytes([number]), layers[:1])
    assert source.n_recent_tokens == 4
    source.forget()
    assert source.n_recent_tokens == 0


# Sentence boundaries


def test_copies_segment_docs_as_the_original_does(bilm):
    nlp = spacy.blank("xx")
    elmo = nlp.add_pipe("elmo", config={"bilm": bilm, "segments": "auto"})
    nlp.add_pipe("sentencizer")
    doc = nlp("birds sang . anna cheered .")
    other = Doc(nlp.vocab, words=[t.text for t in doc])
    other[3].is_sent_start = True
    expected, _ = elmo.provide_layers([other], False)
    for made in (pickle.loads(pickle.dumps(elmo)), copy.deepcopy(elmo)):
        layers, _ = made.provide_layers([other], False)
        np.testing.assert_array_equal(layers.data[0], expected.data[0])


def test_a_sourced_component_segments_alike_in_training_and_in_use(bilm):
    first = spacy.blank("xx")
    first.add_pipe("sentencizer")
    first.add_pipe("elmo", config={"bilm": bilm, "segments": "auto"})
    nlp = spacy.blank("xx")
    elmo = nlp.add_pipe("elmo", source=first)
    doc = Doc(nlp.vocab, words="birds sang loudly anna cheered".split())
    expected = elmo(doc.copy())._.elmo.layers
    # The boundaries of the training data are not there when `elmo` runs.
    doc[3].is_sent_start = True
    layers, _ = elmo.provide_layers([doc], is_train=True)
    np.testing.assert_allclose(layers.data[0], expected, rtol=0, atol=1e-6)
