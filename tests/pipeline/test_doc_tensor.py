"""Test that `elmo` leaves doc.tensor alone where a later component reads what an
earlier one has set there, and that doc._.elmo is right in all of these pipelines."""

import multiprocessing
import pickle
import warnings

import numpy as np
import pytest
import spacy
from helpers.pipelines import (
    assert_close,
    embed_and_encode,
    ner,
    save_bilm,
    tagger,
    train,
)
from helpers.tasks import elmo_alone, make_examples, task_config
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.util import fix_random_seed
from thinc.api import Model, chain

TEXTS = ["green birds sang", "anna visited berlin . many people listened", "", "trains"]
WIDTHS = [16, 12]  # another width than the biLM, and the same


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return str(save_bilm(tmp_path_factory.mktemp("bilm")))


def listener(width, upstream="*"):
    name = "spacy.Tok2VecListener.v1"
    return {"@architectures": name, "width": width, "upstream": upstream}


def tok2vec_config(width):
    parts = embed_and_encode("NORM")
    parts["embed"]["width"] = parts["encode"]["width"] = width
    return {"model": {"@architectures": "spacy.Tok2Vec.v2", **parts}}


def make_trained(width=16, name="tok2vec", upstream="*"):
    """Make a pipeline of `tok2vec` and two components that listen to it, with random
    weights that give every word another tag."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", name=name, config=tok2vec_config(width))
    for task in ("tagger", "ner"):
        nlp.add_pipe(task, config=task_config(task, listener(width, upstream)))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    rng = np.random.default_rng(0)
    for task in ("tagger", "ner"):
        for node in nlp.get_pipe(task).model.walk():
            for param in node.param_names:
                if node.has_param(param):
                    array = node.get_param(param)
                    node.set_param(param, rng.normal(0, 2, array.shape).astype("f"))
    return nlp


def results(docs):
    """Return the predictions for docs, tags and entities."""
    return [
        ([token.tag_ for token in doc], [(e.start, e.end, e.label_) for e in doc.ents])
        for doc in docs
    ]


def check(nlp, expected, bilm, **options):
    """Assert that a pipeline with `elmo` predicts what is expected, and that doc._.elmo
    has what an `elmo` alone gives."""
    alone = spacy.blank("en")
    alone.add_pipe("elmo", config={"bilm": bilm})
    docs = list(nlp.pipe(TEXTS, **options))
    assert results(docs) == expected
    for doc, other in zip(docs, alone.pipe(TEXTS), strict=True):
        assert_close(doc._.elmo.vectors, other.tensor)
        assert_close(doc._.elmo.layers, other._.elmo.layers)
        for token in doc:
            assert_close(token._.elmo, other.tensor[token.i])
        if len(doc):
            assert_close(doc[:2]._.elmo, other.tensor[:2].mean(axis=0))


@pytest.fixture
def expected():
    found = results(make_trained().pipe(TEXTS))
    assert len({tag for tags, _ in found for tag in tags}) > 2
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("before", ["tagger", "ner"])
@pytest.mark.parametrize("store", ["device", "none"])
def test_elmo_can_be_added_to_a_trained_pipeline(bilm, width, before, store):
    nlp = make_trained(width)
    expected = results(nlp.pipe(TEXTS))
    tensors = [doc.tensor for doc in nlp.pipe(TEXTS)]
    nlp.add_pipe("elmo", before=before, config={"bilm": bilm, "store_layers": store})
    for docs in (list(nlp.pipe(TEXTS, batch_size=2)), list(map(nlp, TEXTS))):
        assert results(docs) == expected
        for doc, tensor in zip(docs, tensors):
            assert_close(doc.tensor, tensor)
            assert doc._.elmo.vectors.shape == (len(doc), 12)


@pytest.mark.slow
def test_predictions_are_the_same_after_loading(bilm, expected, tmp_path):
    nlp = make_trained()
    nlp.add_pipe("elmo", before="tagger", config={"bilm": bilm})
    nlp.to_disk(tmp_path / "saved")
    for options in ({}, {"disable": ["tagger", "ner"]}, {"disable": ["elmo"]}):
        loaded = spacy.load(tmp_path / "saved", **options)
        for name in options.get("disable", ()):
            loaded.enable_pipe(name)
        check(loaded, expected, bilm)
    copied = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    check(copied, expected, bilm)
    check(pickle.loads(pickle.dumps(nlp)), expected, bilm)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_predictions_are_the_same_in_other_processes(bilm, expected, method):
    nlp = make_trained()
    nlp.add_pipe("elmo", before="tagger", config={"bilm": bilm})
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method(method, force=True)
    try:
        check(nlp, expected, bilm, n_process=2, batch_size=2)
        other = spacy.blank("en")
        other.add_pipe("elmo", source=nlp)  # is shared, and nobody reads doc.tensor
        check(nlp, expected, bilm, n_process=2, batch_size=2)
        for doc in other.pipe(TEXTS, n_process=2, batch_size=2):
            assert_close(doc.tensor, doc._.elmo.vectors)
    finally:
        multiprocessing.set_start_method(before, force=True)


def test_a_sourced_elmo_knows_its_new_pipeline(bilm, expected):
    alone = spacy.blank("en")
    alone.add_pipe("elmo", config={"bilm": bilm})
    nlp = make_trained()
    nlp.add_pipe("elmo", source=alone, after="tok2vec")
    check(nlp, expected, bilm)
    # The pipeline that it comes from shares the component and is used as before.
    for doc in alone.pipe(TEXTS):
        assert_close(doc.tensor, doc._.elmo.vectors)
    check(nlp, expected, bilm)


def test_sourced_components_that_listen_are_seen(bilm, expected):
    trained = make_trained()
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", source=trained)
    nlp.add_pipe("elmo", config={"bilm": bilm})
    assert nlp("some words").tensor.shape == (2, 12)
    for name in ("tagger", "ner"):
        nlp.add_pipe(name, source=trained)
    check(nlp, expected, bilm)


@pytest.mark.slow
def test_pipelines_may_change_at_any_time(bilm, expected):
    nlp = make_trained()
    nlp.add_pipe("elmo", after="tok2vec", config={"bilm": bilm})
    nlp.rename_pipe("tok2vec", "other")
    nlp.rename_pipe("elmo", "vectors")
    nlp.rename_pipe("tagger", "tags")
    check(nlp, expected, bilm)
    with nlp.select_pipes(disable=["tags", "ner"]):
        # Nobody reads doc.tensor now.
        assert nlp("some words").tensor.shape == (2, 12)
    check(nlp, expected, bilm)
    with nlp.select_pipes(disable=["tags"]):
        found = results(nlp.pipe(TEXTS))
        assert [ents for _, ents in found] == [ents for _, ents in expected]
    without = make_trained()
    without.disable_pipe("tok2vec")
    zeros = results(without.pipe(TEXTS))
    with nlp.select_pipes(disable=["other"]):
        check(nlp, zeros, bilm)
    assert results(nlp.pipe(TEXTS, disable=["other"])) == zeros
    nlp.remove_pipe("other")
    check(nlp, zeros, bilm)


def test_replaced_listeners_read_no_tensor(bilm, expected):
    nlp = make_trained()
    nlp.add_pipe("elmo", after="tok2vec", config={"bilm": bilm})
    nlp.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    check(nlp, expected, bilm)
    assert nlp("some words").tensor.shape == (2, 16)
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    check(nlp, expected, bilm)
    assert nlp("some words").tensor.shape == (2, 12)


def test_a_component_of_another_name_can_be_listened_to(bilm):
    nlp = make_trained(name="shared", upstream="shared")
    expected = results(nlp.pipe(TEXTS))
    nlp.add_pipe("elmo", before="ner", config={"bilm": bilm})
    check(nlp, expected, bilm)


class OwnListener(Model):
    """Reads doc.tensor without being a listener of spaCy."""

    def __init__(self):
        super().__init__("own", self.read, dims={"nO": 16})

    @staticmethod
    def read(model, docs, is_train):
        return [doc.tensor for doc in docs], lambda gradients: []


class OwnUpstream(Tok2Vec):
    def find_listeners(self, component):
        for node in component.model.walk() if hasattr(component, "model") else ():
            if isinstance(node, OwnListener):
                self.add_listener(node, component.name)


@Language.factory("own_upstream", default_config=tok2vec_config(16))
def make_own_upstream(nlp, name, model):
    return OwnUpstream(nlp.vocab, model, name)


def test_another_kind_of_upstream_and_nested_listeners(bilm):
    def make():
        nlp = make_trained()
        trained = nlp.remove_pipe("tok2vec")[1]
        nlp.add_pipe("own_upstream", first=True).model = trained.model
        for task in ("tagger", "ner"):
            model = nlp.get_pipe(task).model
            node = next(n for n in model.walk() if isinstance(n, Tok2VecListener))
            nested = chain(chain(OwnListener(), Model("same", same)), Model("s", same))
            spacy.util.replace_model_node(model, node, nested)
        nlp._link_components()
        return nlp

    expected = results(make().pipe(TEXTS))
    nlp = make()
    nlp.add_pipe("elmo", after="own_upstream", config={"bilm": bilm})
    check(nlp, expected, bilm)


def same(model, X, is_train):
    return X, lambda gradients: gradients


@pytest.mark.slow
def test_where_nobody_needs_it_doc_tensor_is_set(bilm):
    plain = {"bilm": bilm}
    for before, after in (
        ([], []),
        (["tok2vec"], []),
        (["tok2vec"], ["sentencizer"]),
        ([], ["tok2vec"]),  # which overwrites it
    ):
        nlp = spacy.blank("en")
        for name in before:
            nlp.add_pipe(name)
        nlp.add_pipe("elmo", config=plain)
        for name in after:
            nlp.add_pipe(name)
        nlp.initialize()
        width = 96 if "tok2vec" in after else 12
        assert nlp("some words").tensor.shape == (2, width)
    # A listener that can only mean `elmo` gets its vectors.
    for upstream, width in (("elmo", 12), ("*", 12)):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config=plain)
        config = task_config("tagger", listener(width, upstream))
        nlp.add_pipe("tagger", config=config).add_label("X")
        nlp.initialize()
        assert nlp("some words").tensor.shape == (2, 12)


def test_the_setting_decides(bilm, expected):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": bilm, "set_tensor": "never"})
    doc = nlp("some words")
    assert doc.tensor.size == 0 and doc._.elmo.vectors.shape == (2, 12)
    nlp = make_trained(12)
    config = {"bilm": bilm, "set_tensor": "always"}
    nlp.add_pipe("elmo", after="tok2vec", config=config)
    with pytest.warns(UserWarning, match="elmo: set_tensor is 'always', but a later"):
        doc = nlp(TEXTS[0])
    assert_close(doc.tensor, doc._.elmo.vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp(TEXTS[0])  # it warns once


@pytest.mark.slow
def test_two_elmos_in_one_pipeline(bilm, expected, tmp_path):
    other = str(save_bilm(tmp_path / "other", seed=3))
    nlp = make_trained()
    nlp.add_pipe("elmo", name="first", after="tok2vec", config={"bilm": other})
    nlp.add_pipe("elmo", name="second", after="first", config={"bilm": bilm})
    check(nlp, expected, bilm)  # doc._.elmo has the data of the last one
    nlp = spacy.blank("en")
    for name, source in (("first", bilm), ("second", other)):
        nlp.add_pipe("elmo", name=name, config={"bilm": source})
    upstream = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "first"}
    nlp.add_pipe("tagger", config=task_config("tagger", elmo_alone(elmo=upstream)))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    (node,) = nlp.get_pipe("first").listeners
    assert not nlp.get_pipe("second").listeners
    doc = nlp(TEXTS[0])
    alone = spacy.blank("en")
    alone.add_pipe("elmo", config={"bilm": bilm})
    assert_close(node.predict([doc]).data[0], alone(TEXTS[0])._.elmo.layers)
    assert_close(doc.tensor, doc._.elmo.vectors)
    assert np.abs(doc.tensor - alone(TEXTS[0]).tensor).max() > 0.01


def test_components_that_annotate_in_training_keep_doc_tensor(bilm):
    """Train a tagger that listens to a frozen tok2vec, with `elmo` in between."""
    losses = []
    for with_elmo in (False, True):
        nlp = make_trained()
        annotates = ["tok2vec"]
        if with_elmo:
            nlp.add_pipe("elmo", after="tok2vec", config={"bilm": bilm})
            annotates.append("elmo")
        examples = make_examples(nlp)
        found = {}
        for _ in range(3):
            nlp.update(examples, annotates=annotates, exclude=["tok2vec"], losses=found)
        losses.append({name: found[name] for name in ("tagger", "ner")})
    assert losses[0] == losses[1]


def test_analyze_pipes_says_who_sets_doc_tensor(bilm):
    def setters(nlp):
        return nlp.analyze_pipes()["attrs"]["doc.tensor"]["assigns"]

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": bilm})
    assert setters(nlp) == ["elmo"]
    nlp = make_trained()
    nlp.add_pipe("elmo", config={"bilm": bilm})
    assert setters(nlp) == ["tok2vec", "elmo"]
    nlp.remove_pipe("elmo")
    nlp.add_pipe("elmo", after="tok2vec", config={"bilm": bilm})
    assert setters(nlp) == ["tok2vec"]
    assert "doc._.elmo" in nlp.analyze_pipes()["summary"]["elmo"]["assigns"]
    nlp.add_pipe("elmo", name="always", config={"bilm": bilm, "set_tensor": "always"})
    nlp.add_pipe("elmo", name="never", config={"bilm": bilm, "set_tensor": "never"})
    assert setters(nlp) == ["tok2vec", "always"]


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_spacy_train_gives_the_scores_of_a_pipeline_without_elmo(bilm, tmp_path, width):
    scores = []
    for name in ("without", "with"):
        components = {"tok2vec": {"factory": "tok2vec", **tok2vec_config(width)}}
        if name == "with":
            components["elmo"] = {"factory": "elmo", "bilm": bilm}
        components["tagger"] = tagger(listener(width))
        components["ner"] = ner(listener(width))
        path = train(
            tmp_path / name,
            components,
            training={"max_steps": 40, "eval_frequency": 40},
        )
        nlp = spacy.load(path)
        scores.append(spacy.load(path).meta["performance"])
        docs = list(nlp.pipe(TEXTS))
        assert docs[0].tensor.shape == (3, width)
    for score in ("tag_acc", "ents_f"):
        assert scores[0][score] == scores[1][score] > 0.9
