"""Run pipelines on a simulated GPU (see the fixture `device`).

All components of spaCy that can listen to `elmo` must train and predict. The code of
spacy_elmo must not make the host (the CPU) wait for the device (the GPU)."""

import numpy as np
import pytest
import spacy
from helpers.pipelines import (
    elmo,
    elmo_tok2vec,
    ner,
    parser,
    save_bilm,
    tagger,
    tok2vec_with_elmo,
)
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import SGD, use_ops

TEXTS = ["Ann saw  Bob in Paris .", "", "The saw cut wood . It rained .", " ", "Tea"]
LOSS = "hand_over.py:finish"


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return str(save_bilm(tmp_path_factory.mktemp("bilm")))


# Components


def tagged(factory, tok2vec, **settings):
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    return {"factory": factory, "model": model, **settings}


def textcat(factory, tok2vec):
    bow = {
        "@architectures": "spacy.TextCatBOW.v3",
        "exclusive_classes": factory == "textcat",
        "length": 64,
        "ngram_size": 1,
        "no_output_layer": False,
    }
    architecture = "spacy.TextCatEnsemble.v2"
    model = {"@architectures": architecture, "tok2vec": tok2vec, "linear_model": bow}
    return {"factory": factory, "model": model}


def spancat(tok2vec):
    model = {
        "@architectures": "spacy.SpanCategorizer.v1",
        "tok2vec": tok2vec,
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 8},
        "scorer": {"@layers": "spacy.LinearLogistic.v1"},
    }
    return {"factory": "spancat", "model": model}


def downstream(make_tok2vec):
    return [
        tagger(make_tok2vec()),
        tagged("morphologizer", make_tok2vec()),
        parser(make_tok2vec()),
        ner(make_tok2vec()),
        textcat("textcat", make_tok2vec()),
        textcat("textcat_multilabel", make_tok2vec()),
        spancat(make_tok2vec()),
        tagged("senter", make_tok2vec()),
        tagged("trainable_lemmatizer", make_tok2vec(), min_tree_freq=1),
    ]


def make_nlp(configs):
    nlp = spacy.blank("xx")
    for config in configs:
        settings = {key: value for key, value in config.items() if key != "factory"}
        nlp.add_pipe(config["factory"], config=settings)
    return nlp


def make_examples(nlp, name="Ann"):
    words = f"{name} saw Bob . Bob left .".split()
    reference = Doc(
        nlp.vocab,
        words=words,
        tags="NNP VBD NNP . NNP VBD .".split(),
        morphs=["Number=Sing", "", "Number=Sing", "", "Number=Sing", "", ""],
        lemmas="Ann see Bob . Bob leave .".split(),
        heads=[1, 1, 1, 1, 5, 5, 5],
        deps="nsubj ROOT dobj punct nsubj ROOT punct".split(),
        ents=["B-PER", "O", "B-PER", "O", "B-PER", "O", "O"],
    )
    reference.cats = {"good": 1.0, "bad": 0.0}
    reference.spans["sc"] = [Span(reference, 0, 2, label="NP")]
    other = reference[:4].as_doc()
    other.cats = {"good": 0.0, "bad": 1.0}
    return [
        Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc)
        for doc in (reference, other)
    ]


def annotations(doc):
    tokens = [(t.tag_, str(t.morph), t.dep_, t.head.i, t.lemma_) for t in doc]
    return tokens, [str(ent) for ent in doc.ents]


TOK2VECS = {
    "input": lambda: tok2vec_with_elmo("input"),
    "output": lambda: tok2vec_with_elmo("output"),
    "both": lambda: tok2vec_with_elmo("both"),
    "alone": elmo_tok2vec,
}


def initialize(nlp):
    """Initialize a pipeline and return the optimizer."""
    examples = make_examples(nlp)
    return nlp.initialize(lambda: examples)


def update(nlp, optimizer, n_steps=1, name="Ann", drop=0.1):
    for _ in range(n_steps):
        nlp.update(make_examples(nlp, name), sgd=optimizer, drop=drop)
    # nlp.update updates the biLM when the next step begins, so do the last update here.
    nlp.get_pipe("elmo").finish_update(optimizer)


# Tests


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("kind", TOK2VECS)
@pytest.mark.slow
def test_all_components_train_and_predict(device, bilm, kind, frozen):
    configs = [elmo(bilm=bilm, frozen=frozen), *downstream(TOK2VECS[kind])]
    nlp = make_nlp(configs)
    optimizer = initialize(nlp)
    with device.transfers(*([] if frozen else [LOSS])) as found:
        update(nlp, optimizer, n_steps=2)
    if device.counts:
        assert len(found) == (0 if frozen else 2)
    with device.transfers(), nlp.use_params(optimizer.averages):
        docs = [*nlp.pipe(TEXTS[:3], batch_size=2), nlp(TEXTS[4])]
        data = nlp.to_bytes()
    loaded = make_nlp(configs).from_bytes(data)
    with device.transfers():
        others = [*loaded.pipe(TEXTS[:3]), loaded(TEXTS[4])]
    for doc, other in zip(docs, others, strict=True):
        assert device.has(doc.tensor) and annotations(doc) == annotations(other)


@pytest.mark.slow
def test_training_has_the_same_results_as_on_a_cpu(device, bilm):
    configs = [elmo(bilm=bilm, frozen=False), tagger(tok2vec_with_elmo("both"))]
    nlp = make_nlp(configs)
    initialize(nlp)
    data, before = nlp.to_bytes(), device.host(nlp(TEXTS[0]).tensor)

    def trained(nlp):
        update(nlp, SGD(1.0), n_steps=2, drop=0.0)
        doc = nlp(TEXTS[0])
        tok2vec = nlp.get_pipe("tagger").model.get_ref("tok2vec")
        return [doc.tensor, *tok2vec.predict([doc])]

    found = [device.host(array) for array in trained(nlp)]
    with use_ops("numpy"):
        expected = trained(make_nlp(configs).from_bytes(data))
    assert abs(found[0] - before).max() > 0.01
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "settings, place",
    [
        ({"store_layers": "cpu"}, "component.py:set_annotations"),
        ({"store_layers": "none"}, "component.py:set_annotations"),
        ({"store_dtype": "float16"}, None),
        ({"cache_layers": "always"}, None),
        ({"stateful": True, "window": 3, "overlap": 0}, None),
    ],
)
def test_listeners_find_layers_on_the_device(device, bilm, settings, place):
    nlp = make_nlp([elmo(bilm=bilm, **settings), tagger(tok2vec_with_elmo())])
    optimizer = initialize(nlp)
    with device.transfers():
        update(nlp, optimizer)
    with device.transfers(*([place] if place else [])):
        docs = list(nlp.pipe(TEXTS, batch_size=2))
    from_disk = [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    for same in (docs, from_disk, [nlp.make_doc(text) for text in TEXTS]):
        with device.transfers():
            tok2vec = nlp.get_pipe("tagger").model.get_ref("tok2vec").predict(same)
        assert all(map(device.has, tok2vec))


@pytest.mark.parametrize("when", ["training", "always"])
@pytest.mark.parametrize(
    "where, spilled",
    [
        ({}, []),
        ({"cache_memory_mb": 0}, ["layer_cache.py:put"]),
        ({"cache_folder": "cache"}, ["layer_cache.py:put"]),
    ],
)
def test_the_layer_cache_transfers_only_what_it_writes(
    device, bilm, tmp_path, monkeypatch, when, where, spilled
):
    monkeypatch.chdir(tmp_path)
    settings = {"bilm": bilm, "cache_layers": when, **where}
    nlp = make_nlp([elmo(**settings), tagger(tok2vec_with_elmo())])
    optimizer = initialize(nlp)
    for places in (spilled, []):
        with device.transfers(*places):
            update(nlp, optimizer, name="Eve")
    for places in (spilled if when == "always" else [], []):
        with device.transfers(*places):
            assert device.has(nlp("Something new").tensor)


@pytest.mark.parametrize("frozen", [True, False])
def test_gradients_of_several_batches_accumulate(device, bilm, frozen):
    """Accumulate gradients like `spacy train` with the setting accumulate_gradient."""
    nlp = make_nlp([elmo(bilm=bilm, frozen=frozen), tagger(tok2vec_with_elmo())])
    optimizer = initialize(nlp)
    with device.transfers(*([] if frozen else [LOSS])) as found:
        for example in make_examples(nlp):
            nlp.update([example], sgd=None)
        for _, pipe in nlp.pipeline:
            pipe.finish_update(optimizer)
    if device.counts:
        assert len(found) == (0 if frozen else 2)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_separate_bilm_for_one_component(device, bilm, frozen):
    layers = {"@architectures": "spacy-elmo.ElmoLayers.v1", "bilm": bilm}
    tok2vec = {**tok2vec_with_elmo(), "elmo": {**layers, "frozen": frozen}}
    nlp = make_nlp([tagger(tok2vec)])
    optimizer = initialize(nlp)
    with device.transfers():
        for _ in range(2):
            nlp.update(make_examples(nlp), sgd=optimizer)
        list(nlp.pipe(TEXTS))


def test_a_replaced_listener_predicts_without_transfers(device, bilm):
    nlp = make_nlp([elmo(bilm=bilm), tagger(tok2vec_with_elmo())])
    update(nlp, initialize(nlp))
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.elmo"])
    nlp.remove_pipe("elmo")
    with device.transfers():
        list(nlp.pipe(TEXTS))
