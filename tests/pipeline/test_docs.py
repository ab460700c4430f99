"""Test the ELMo data of docs: what is stored, what happens if docs are saved, copied or
retokenized, and which layers listeners get for such docs."""

import pickle

import numpy as np
import pytest
import spacy
from helpers.pipelines import assert_close
from spacy.tokens import Doc, DocBin

TEXT = "New York is in the USA . It is \n large ."


@pytest.fixture
def other_folder(random_pair, tmp_path):
    """Save a second biLM, whose layers have the same shape as those of `tiny`."""
    lstm = {"projection_dim": 5, "n_layers": 2}
    random_pair(8, scale=0.5, lstm=lstm).bilm.save(tmp_path / "other")
    return str(tmp_path / "other")


@pytest.fixture
def nlp(make_nlp):
    return make_nlp()


def assert_same(doc, other):
    """Assert that two docs have the same ELMo layers and vectors."""
    assert_close(doc._.elmo.layers, other._.elmo.layers)
    assert_close(doc._.elmo.vectors, other._.elmo.vectors)
    assert_close(doc[-1]._.elmo, other[-1]._.elmo)
    assert_close(doc[-1]._.elmo_layers, other[-1]._.elmo_layers)


def assert_refused(doc, *parts, token=-1):
    """Assert that all ELMo attributes of a doc raise ValueError with a good message.

    parts (str): What the message, which must be one line, contains.
    token (int): The token whose attributes are checked too.
    """
    for access in (
        lambda: doc._.elmo.layers,
        lambda: doc._.elmo.vectors,
        lambda: doc[token]._.elmo,
        lambda: doc[token]._.elmo_layers,
        lambda: doc[token:]._.elmo,
    ):
        with pytest.raises(ValueError) as caught:
            access()
        assert "\n" not in str(caught.value)
        assert all(part in str(caught.value) for part in parts)


# What docs store


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("store", ["device", "cpu"])
@pytest.mark.parametrize("cache", ["none", "always"])
def test_layers_are_stored_as_the_settings_say(nlp, make_nlp, store, dtype, cache):
    expected = nlp(TEXT)
    other = make_nlp(store_layers=store, store_dtype=dtype, cache_layers=cache)
    for doc in other.pipe([TEXT, TEXT]):
        layers = doc._.elmo.layers
        assert layers.dtype == dtype
        assert_close(
            layers, expected._.elmo.layers, 1e-6 if dtype == "float32" else 2e-3
        )
        # Vectors are float32 even if the layers are float16.
        assert doc.tensor.dtype == doc._.elmo.vectors.dtype == np.float32
        assert_close(doc.tensor, expected.tensor)
        assert_close(doc._.elmo.vectors, expected.tensor)
        assert_close(doc[2]._.elmo, expected.tensor[2])
        assert_close(doc[:3]._.elmo, expected.tensor[:3].mean(axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("cache", ["none", "always"])
def test_layers_need_not_be_stored(nlp, make_nlp, dtype, cache):
    expected = nlp(TEXT)
    doc = make_nlp(store_layers="none", store_dtype=dtype, cache_layers=cache)(TEXT)
    assert not any(
        isinstance(value, np.ndarray) and value.ndim == 3
        for data in doc.user_data.values()
        for value in data.values()
    )
    assert doc.tensor.dtype == np.float32
    assert_close(doc.tensor, expected.tensor)
    assert_close(doc._.elmo.vectors, expected.tensor)
    assert_close(doc[2]._.elmo, expected.tensor[2])
    shown = "<ELMo of 12 tokens: vectors (12, 10), biLM "
    assert repr(doc._.elmo).startswith(shown)
    for access in (lambda: doc._.elmo.layers, lambda: doc[0]._.elmo_layers):
        with pytest.raises(ValueError, match="layers.* not stored; set store_layers"):
            access()


# Docs that are saved, copied or changed


def reload_bytes(doc):
    return Doc(spacy.blank("xx").vocab).from_bytes(doc.to_bytes())


def reload_docbin(doc):
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    return next(DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab))


def reload_pickle(doc):
    return pickle.loads(pickle.dumps(doc))


@pytest.mark.parametrize("reload", [reload_bytes, reload_docbin, reload_pickle])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_reloaded_docs_keep_everything(make_nlp, reload, dtype):
    doc = make_nlp(store_dtype=dtype)(TEXT)
    other = reload(doc)
    assert other._.elmo.layers.dtype == dtype
    assert_same(other, doc)


def test_a_docbin_without_user_data_has_no_vectors(nlp):
    data = DocBin(docs=[nlp(TEXT)]).to_bytes()
    (doc,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    assert_refused(doc, "no ELMo vectors", "run the 'elmo' component", "DocBin")
    assert_same(nlp(doc), nlp(TEXT))


def test_copies_share_no_arrays(nlp):
    doc = nlp(TEXT)
    other = doc.copy()
    assert_same(other, doc)
    other._.elmo.layers[:] = 0
    assert doc._.elmo.layers.any() and doc._.elmo.vectors.any()


def test_docs_made_from_other_docs_have_no_vectors(nlp):
    docs = [nlp(TEXT), nlp("Hi there")]
    with pytest.warns(UserWarning, match="W101.*elmo"):
        merged = Doc.from_docs(docs)
    cut = docs[0][1:4].as_doc(copy_user_data=True)
    for doc in (merged, cut):
        assert_refused(doc, "no ELMo vectors", "Doc.from_docs", "Span.as_doc")
    # Doc.from_docs sets a sentence boundary where the second doc begins, so the layers
    # are those of the separate docs.
    expected = np.concatenate([doc._.elmo.layers for doc in docs])
    assert_close(nlp(merged)._.elmo.layers, expected)
    assert_same(nlp(cut), nlp("York is in"))


def merge(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])


def split(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[5], ["U", "SA"], heads=[doc[4], doc[4]])


def merge_and_split(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[-2], ["lar", "ge"], heads=[doc[4], doc[4]])


@pytest.mark.parametrize("retokenize,n", [(merge, 11), (split, 13)])
def test_retokenized_docs_are_refused(nlp, retokenize, n):
    doc = nlp(TEXT)
    retokenize(doc)
    for token in (0, -1):
        assert_refused(
            doc, "retokenized", f"{n} tokens", "12", "run the component", token=token
        )
    assert_same(nlp(doc), nlp(Doc(nlp.vocab, words=[token.text for token in doc])))


def test_retokenized_docs_are_refused_even_with_the_same_number_of_tokens(nlp):
    doc = nlp(TEXT)
    expected = doc[-1]._.elmo
    merge_and_split(doc)
    assert len(doc) == 12
    assert_refused(doc, "retokenized", token=3)
    assert_close(doc[-1]._.elmo, expected)  # this token has not changed


DAMAGES = {
    "no dict": lambda data: 5,
    "no words": lambda data: {k: v for k, v in data.items() if k != "words"},
    "words": lambda data: {**data, "words": "abc"},
    "key": lambda data: {**data, "key": 3},
    "bounds": lambda data: {**data, "bounds": np.zeros(4, np.int32)},
    "few layers": lambda data: {**data, "layers": data["layers"][:1]},
    "layers": lambda data: {**data, "layers": "x"},
    "short mix": lambda data: {**data, "mix": [1.0]},
    "mix": lambda data: {**data, "mix": "xyz"},
    "surprisal": lambda data: {**data, "surprisal": np.zeros(3)},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_data_are_refused(nlp, damage):
    doc = nlp(TEXT)
    [key] = (key for key in doc.user_data if key[1] == "elmo_data")
    doc.user_data[key] = damage(doc.user_data[key])
    loaded = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert_refused(loaded, "the ELMo data of this doc are damaged", "again")
    with pytest.raises(ValueError, match="are damaged"):
        repr(loaded._.elmo)
    assert_same(nlp(loaded), nlp(TEXT))


def test_vectors_can_be_removed(nlp):
    nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo": None}})
    doc = nlp(TEXT)
    assert not doc.user_data
    assert_refused(doc, "no ELMo vectors")
    with pytest.raises(ValueError, match="only be set to None"):
        doc._.elmo = 1


@pytest.mark.parametrize("store", ["device", "none"])
def test_another_doc_tensor_does_not_change_the_vectors(make_nlp, store):
    nlp = make_nlp(store_layers=store)
    expected = nlp(TEXT)._.elmo.vectors
    nlp.add_pipe("tok2vec")
    nlp.initialize()
    doc = nlp(TEXT)
    assert doc.tensor.shape == (12, 96)
    assert_close(doc._.elmo.vectors, expected)


def test_running_twice_gives_the_results_of_the_last_run(nlp, make_nlp, other_folder):
    doc, other = nlp(TEXT), make_nlp(bilm=other_folder)
    assert_same(nlp(doc), nlp(TEXT))
    assert doc.vector_norm > 0
    expected = other(TEXT)
    assert np.abs(expected.tensor - doc.tensor).max() > 0.1
    other.get_pipe("elmo")(doc)
    assert_same(doc, expected)
    # spaCy caches these two, so they could be those of the first run.
    assert_close(doc.vector, expected.vector)
    assert doc.vector_norm == pytest.approx(expected.vector_norm)


def test_token_vector_prefers_the_vectors_of_the_vocab(nlp):
    expected = nlp(TEXT)
    table = np.arange(4, dtype=np.float32)
    nlp.vocab.set_vector("York", table)
    doc = nlp(TEXT)
    assert_close(doc[1].vector, table, 0)
    assert doc[2].vector.shape == (4,) and not doc[2].has_vector
    assert_close(doc.tensor, expected.tensor)
    assert_same(doc, expected)
    assert_close(doc[1]._.elmo, expected.tensor[1])


# Listeners


@pytest.fixture
def make_tagging(make_nlp):
    def make(*after, **config):
        nlp = make_nlp(**config)
        for name in after:
            nlp.add_pipe(name)
        tok2vec = {
            "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
            "mix": {"@architectures": "spacy-elmo.ElmoMix.v1", "layer_norm": False},
        }
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
        tagger = nlp.add_pipe("tagger", config={"model": model})
        for n in range(6):
            tagger.add_label(f"T{n}")
        nlp.initialize()
        # Set random weights: without training, all tokens would get the same label.
        softmax, mean = tagger.model.get_ref("softmax"), nlp(TEXT).tensor.mean(axis=0)
        weights = np.random.default_rng(0).normal(0, 9, (6, 10)).astype("f")
        softmax.set_param("W", weights)
        softmax.set_param("b", -weights @ mean)
        return nlp

    return make


def texts(n):
    rng = np.random.default_rng(0)
    vocab = [*TEXT.split(), ".", "\n"]
    for k in range(n):
        yield f"{k} . " + " ".join(vocab[i] for i in rng.integers(0, len(vocab), 14))


def tags(docs):
    return [[token.tag_ for token in doc] for doc in docs]


def listener_layers(nlp, docs):
    """Return the layers that the tagger's listener gets for some docs, one array of
    shape (n_tokens, n_layers, width) per doc."""
    nodes = nlp.get_pipe("tagger").model.walk()
    return (
        next(node for node in nodes if node.name == "elmo-listener").predict(docs).data
    )


STORED = [
    {"store_layers": "none"},
    {"store_layers": "cpu"},
    {"store_layers": "none", "cache_layers": "always"},
    {"store_dtype": "float16"},
]


@pytest.mark.parametrize("after", [[], ["sentencizer"]])
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.slow
def test_predictions_do_not_depend_on_what_docs_store(make_tagging, after, storage):
    expected = tags(make_tagging(*after).pipe(texts(25)))
    assert len({tag for row in expected for tag in row}) > 3
    nlp = make_tagging(*after, **storage)
    assert tags(nlp.pipe(texts(25))) == expected
    assert tags(nlp.pipe(texts(25), batch_size=1)) == expected
    assert tags(map(nlp, texts(25))) == expected


@pytest.mark.parametrize("storage", [{}, *STORED])
@pytest.mark.slow
def test_listeners_get_layers_of_the_segments_that_elmo_saw(make_tagging, storage):
    expected = [doc._.elmo.layers for doc in make_tagging().pipe(texts(30))]
    nlp = make_tagging("sentencizer", **storage)
    docs = list(nlp.pipe(texts(30), batch_size=30))
    assert all(len(list(doc.sents)) > 1 for doc in docs)
    early = listener_layers(nlp, docs)
    # Process so many docs that the component forgets the layers of the first ones.
    list(nlp.pipe((f"another text {n}" for n in range(100)), batch_size=10))
    for a, b, layers in zip(early, listener_layers(nlp, docs), expected, strict=True):
        assert_close(a, layers)
        assert_close(b, layers)


@pytest.mark.parametrize("storage", [{}, {"store_layers": "none"}])
@pytest.mark.slow
def test_listeners_do_not_use_outdated_layers(
    make_nlp, make_tagging, other_folder, storage
):
    nlp = make_tagging(**storage)
    others = [{"bilm": other_folder}, {"stateful": True, "window": 4, "overlap": 0}]
    docs = [make_nlp(**other, **storage)(TEXT) for other in others]
    docs += [nlp.make_doc(TEXT), reload_bytes(nlp(TEXT))]
    for retokenize in (merge, split, merge_and_split):
        docs.append(nlp(TEXT))
        retokenize(docs[-1])
    for doc, found in zip(docs, listener_layers(nlp, docs), strict=True):
        fresh = Doc(nlp.vocab, words=[token.text for token in doc])
        expected = nlp.get_pipe("elmo").model.predict([fresh]).data[0]
        assert_close(found, expected)


@pytest.mark.filterwarnings("ignore:tagger. found the biLM")
def test_listeners_do_not_use_layers_of_earlier_weights(make_tagging, other_folder):
    nlp = make_tagging(store_layers="none")
    other = make_tagging(store_layers="none", bilm=other_folder)
    nlp(TEXT)
    doc = other(TEXT)
    nlp.get_pipe("elmo").from_bytes(other.get_pipe("elmo").to_bytes())
    assert_close(listener_layers(nlp, [doc])[0], listener_layers(other, [doc])[0])
