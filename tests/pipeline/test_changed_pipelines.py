"""Test components that are copied, sourced or shared, and docs that change during
training: no component may get vectors that are meant for another one."""

import copy
import warnings

import numpy as np
import pytest
import spacy
from helpers.pipelines import assert_close
from helpers.tasks import elmo_alone, make_examples, save_tiny, task_config, with_elmo
from spacy.training import Example

from spacy_elmo.text.tokenizers import MECAB, RULES, load_language

TEXT = "green birds sang loudly . many people listened"


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilm") / "bilm")


def make(bilm, tok2vec=None, **settings):
    """Make an untrained pipeline of `elmo` and a tagger that uses it."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"bilm": bilm, **settings})
    nlp.add_pipe("tagger", config=task_config("tagger", tok2vec or elmo_alone()))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp


def listener(upstream="elmo"):
    return {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": upstream}


def spacy_listener(width):
    name = "spacy.Tok2VecListener.v1"
    return {"@architectures": name, "width": width, "upstream": "tok2vec"}


def tagger_input(nlp, docs):
    """Return what the tagger's tok2vec computes for some docs."""
    return np.concatenate(nlp.get_pipe("tagger").model.get_ref("tok2vec").predict(docs))


def reload(nlp):
    return spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())


@spacy.Language.component("merge_first_words", retokenizes=True)
def merge_first_words(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:2])
    return doc


def test_a_doc_that_is_retokenized_in_training_gets_new_layers(bilm):
    nlp = make(bilm)
    seen = []
    tok2vec = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    mix = tok2vec.layers[1]
    original = mix._func

    def watch(model, layers, is_train):
        seen.append([len(array) for array in layers.data])
        return original(model, layers, is_train)

    mix._func = watch
    nlp.add_pipe("merge_first_words", after="elmo")
    docs = [nlp.make_doc(TEXT) for _ in range(2)]
    golds = [nlp.make_doc(TEXT) for _ in range(2)]
    for gold in golds:
        merge_first_words(gold)
        for token in gold:
            token.tag_ = "ADJ"
    examples = [Example(doc, gold) for doc, gold in zip(docs, golds)]
    nlp.update(examples, annotates=["merge_first_words"])
    assert seen[-1] == [len(gold) for gold in golds]


def test_pipelines_that_share_elmo_and_vocab_keep_their_predictions(bilm):
    nlp = spacy.blank("xx")
    width = spacy.blank("xx").add_pipe("elmo", config={"bilm": bilm}).sizes()[1]
    tok2vec = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None}
    tok2vec |= {"width": width, "depth": 1, "embed_size": 100, "window_size": 1}
    tok2vec |= {"maxout_pieces": 2, "subword_features": True}
    nlp.add_pipe("tok2vec", config={"model": tok2vec})
    nlp.add_pipe("tagger", config=task_config("tagger", spacy_listener(width)))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    expected = nlp(TEXT).tensor
    nlp.add_pipe("elmo", before="tagger", config={"bilm": bilm})
    other = spacy.blank("xx", vocab=nlp.vocab)
    other.add_pipe("elmo", source=nlp)
    assert_close(nlp(TEXT).tensor, expected)
    doc = other(TEXT)
    assert_close(doc.tensor, doc._.elmo.vectors)


@pytest.mark.parametrize("where, width", [(None, 12), ("input", 16), ("both", 28)])
def test_the_listeners_of_a_shared_tok2vec_can_be_replaced(bilm, where, width):
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"bilm": bilm})
    config = with_elmo(where=where) if where else elmo_alone()
    nlp.add_pipe("tok2vec", config={"model": config})
    nlp.add_pipe("tagger", config=task_config("tagger", spacy_listener(width)))
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    docs = [nlp(TEXT)]
    expected = tagger_input(nlp, docs)
    nlp.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    for replaced in (nlp, reload(nlp)):
        assert_close(tagger_input(replaced, [replaced(TEXT)]), expected)


def test_replaced_listeners_keep_precision_and_source(bilm):
    nlp = make(bilm, precision="int8")
    docs = [nlp.make_doc(TEXT)]
    expected = tagger_input(nlp, docs)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.elmo"])
    assert_close(tagger_input(reload(nlp), docs), expected)
    config = nlp.config["components"]["tagger"]["model"]["tok2vec"]["elmo"]
    assert config["bilm"] == bilm


def test_a_listener_gets_the_layers_of_its_own_elmo(bilm):
    text = "green birds sang . many people listened . trains were late"
    nlp = make(bilm, elmo_alone(elmo=listener()))
    expected = tagger_input(nlp, [nlp.make_doc(text)])
    other = {"bilm": bilm, "segments": "windows"}
    nlp.add_pipe("elmo", name="other", after="elmo", config=other)
    assert (
        np.abs(
            nlp(text)._.elmo.layers
            - nlp.get_pipe("elmo")(nlp.make_doc(text))._.elmo.layers
        ).max()
        > 1e-3
    )
    assert_close(tagger_input(nlp, [nlp(text)]), expected)


def test_only_the_elmo_that_serves_a_listener_lists_it(bilm):
    nlp = make(bilm)
    nlp.add_pipe("elmo", name="other", after="elmo", config={"bilm": bilm})
    assert nlp.get_pipe("other").listening_components == ["tagger"]
    assert nlp.get_pipe("elmo").listening_components == []


def test_copying_the_model_of_a_task_copies_no_bilm(bilm):
    nlp = make(bilm)
    model = copy.deepcopy(nlp.get_pipe("tagger").model)
    (node,) = [node for node in model.walk() if node.name == "elmo-listener"]
    assert node.upstream is nlp.get_pipe("elmo")
    other = copy.deepcopy(nlp)
    (node,) = other.get_pipe("elmo").listeners
    assert node.upstream is other.get_pipe("elmo")
    assert_close(other(TEXT).tensor, nlp(TEXT).tensor)


def test_vectors_of_different_mixes_are_not_compared(bilm):
    one, two = (make(bilm, mix=mix)(TEXT) for mix in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="different mixes"):
        one._.elmo_similarity(two)


@pytest.mark.parametrize("storage", [{"store_layers": "none"}, {}])
def test_doc_tensor_can_be_changed_in_place(bilm, storage):
    doc = make(bilm, **storage)(TEXT)
    expected = doc._.elmo.vectors.copy()
    doc.tensor *= 2
    assert_close(doc._.elmo.vectors, expected)


def load_korean(tokenizer):
    pytest.importorskip("mecab")
    return load_language("ko", tokenizer)


def test_the_separate_bilm_of_a_task_fits_the_tokens():
    nlp = load_korean(MECAB)
    layers = {"@architectures": "spacy-elmo.ElmoLayers.v1"}
    nlp.add_pipe("tagger", config=task_config("tagger", elmo_alone(elmo=layers)))
    doc = nlp.make_doc("학교에 갔다")
    tags = ["A"] * len(doc)
    examples = [Example.from_dict(doc, {"tags": tags})]
    nlp.initialize(lambda: examples)
    (elmo,) = [node for node in nlp.get_pipe("tagger").model.walk() if node.shims]
    assert elmo.shims[0].name == "ko_elmo_morph_sm"


def test_a_bilm_of_other_tokens_warns_wherever_it_is_named():
    nlp = load_korean(MECAB)
    nlp.add_pipe("elmo")
    nlp.config["initialize"]["components"]["elmo"] = {"bilm": "ko_elmo_sm"}
    with pytest.warns(UserWarning, match="was trained on words between spaces"):
        nlp.initialize()


def test_a_tokenizer_that_is_replaced_later_counts():
    nlp = load_korean(MECAB)
    nlp.add_pipe("elmo")
    nlp.tokenizer = load_korean(RULES).tokenizer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = nlp("가 나")
    assert "biLM ko_elmo_sm" in repr(doc._.elmo)
