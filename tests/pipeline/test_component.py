"""Test the `elmo` component as users see it: its attributes and settings, and that the
results do not depend on batches and processes."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import spacy
import torch
from helpers.pipelines import assert_close
from spacy.tokens import Doc

from spacy_elmo import load_bilm
from spacy_elmo.layers.mix import ElmoMix

TEXT = "Let's stick to improvisation in this skit."


def refusal(function, *args, **kwargs):
    """Call a function that must raise ValueError with a message of one line, and return
    the message."""
    with pytest.raises(ValueError) as caught:
        function(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Attributes of docs, spans and tokens


def test_a_doc_has_all_attributes(tiny_folder, make_nlp):
    nlp = make_nlp()
    doc = nlp(TEXT)
    layers = load_bilm(tiny_folder).embed([[token.text for token in doc]])[0]
    layers = layers.transpose(1, 0, 2)
    vectors = layers.mean(axis=1)
    assert np.abs(layers).max() > 0.5
    assert (len(doc), 3, 10) == layers.shape

    assert isinstance(doc.tensor, np.ndarray)
    assert doc.tensor.dtype == doc._.elmo.layers.dtype == np.float32
    assert_close(doc.tensor, vectors)
    assert_close(doc._.elmo.vectors, vectors)
    assert_close(doc._.elmo.layers, layers)
    assert_close(doc[1]._.elmo_layers, layers[1])
    assert_close(doc[1]._.elmo, vectors[1])
    assert_close(doc[0:3]._.elmo, vectors[:3].mean(axis=0))
    assert_close(doc[-1]._.elmo, vectors[-1])
    assert_close(doc[2:2]._.elmo, np.zeros(10))


def test_layer_0_is_the_token_vector_twice(make_nlp):
    words = make_nlp()(TEXT)._.elmo.layers[:, 0]
    assert words.any()
    assert_close(words[:, :5], words[:, 5:], 0)
    again = make_nlp()("skit in other words")._.elmo.layers[:, 0]
    assert_close(again[:2], words[[7, 5]])  # although the context is another


@pytest.mark.filterwarnings("ignore:.*W007")  # spaCy warns if there are no word vectors
def test_vectors_and_similarity_of_spacy_work(make_nlp):
    nlp = make_nlp()
    doc, other = nlp(TEXT), nlp("Another text")
    assert doc.has_vector and doc[1].has_vector
    assert_close(doc[1].vector, doc.tensor[1])
    assert_close(doc[1:3].vector, doc.tensor[1:3].mean(axis=0))
    assert_close(doc.vector, doc.tensor.mean(axis=0))
    a, b = doc.vector, other.vector
    expected = a @ b / np.sqrt((a @ a) * (b @ b))
    assert doc.similarity(other) == pytest.approx(expected, abs=1e-5)
    assert abs(expected) < 0.999
    assert doc.similarity(nlp(TEXT)) == pytest.approx(1, abs=1e-5)


def test_the_repr_says_what_is_stored(make_nlp):
    nlp = make_nlp()
    shapes = "layers (9, 3, 10), vectors (9, 10)"
    assert repr(nlp(TEXT)._.elmo).startswith(f"<ELMo of 9 tokens: {shapes}, biLM ")
    assert repr(nlp.make_doc(TEXT)._.elmo) == "<ELMo of 9 tokens: nothing computed>"


DEFAULT = """
import sys
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
sys.stdout.write(nlp(sys.argv[1]).tensor.tobytes().hex())
"""


@pytest.mark.slow
def test_the_default_works_without_a_config_in_any_process(recwarn):
    warnings.simplefilter("always")
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp(TEXT)
    list(nlp.pipe(["More text", "and more"]))
    assert torch.rand(1) == expected  # the random state is unchanged
    assert not recwarn.list

    command = [sys.executable, "-c", DEFAULT, TEXT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = np.frombuffer(bytes.fromhex(done.stdout), np.float32)
    assert_close(found.reshape(9, -1), doc.tensor)
    assert np.abs(found).max() > 0.01


def test_a_bilm_from_a_folder_gives_no_warning(make_nlp, recwarn):
    warnings.simplefilter("always")
    make_nlp()(TEXT)
    assert not recwarn.list


# The mix


def test_the_mix_is_the_mean_or_has_the_given_shares(make_nlp):
    layers = make_nlp()(TEXT)._.elmo.layers
    assert_close(make_nlp(mix=None)(TEXT).tensor, layers.mean(axis=1))
    assert_close(make_nlp(mix=[0, 0, 1])(TEXT).tensor, layers[:, 2])
    doc = make_nlp(mix=[0.5, 2.0, -1.0])(TEXT)
    expected = 0.5 * layers[:, 0] + 2 * layers[:, 1] - layers[:, 2]
    assert_close(doc.tensor, expected, 2e-6)
    assert_close(doc._.elmo.vectors, expected, 2e-6)
    assert_close(doc[3]._.elmo, expected[3], 2e-6)


@pytest.mark.parametrize("mix", [[1.0], [0.25] * 4])
def test_a_mix_of_the_wrong_length_is_refused(make_nlp, mix):
    message = refusal(make_nlp(mix=mix), TEXT)
    assert f"mix has {len(mix)} numbers; expected 3" in message


@pytest.mark.parametrize(
    "mix", [[], [0, 0, 0], [0.0], [1, float("nan"), 1], [float("-inf"), 0, 1], [1e300]]
)
def test_a_mix_that_gives_no_vectors_is_refused_where_it_is_set(make_nlp, mix):
    expected = f"elmo: mix is {mix}; expected a finite number for each layer"
    elmo = make_nlp().get_pipe("elmo")
    assert refusal(setattr, elmo, "mix", mix).startswith(expected)
    expected = expected.replace("elmo: mix", "ElmoMix: fixed")
    assert refusal(ElmoMix, fixed=mix).startswith(expected)
    with pytest.raises(ValueError, match="mix"):  # spaCy itself refuses nan in configs
        make_nlp(mix=mix)
    assert "finite" in refusal(ElmoMix, init_weights=[float("nan")])
    assert "finite" in refusal(ElmoMix, init_gamma=float("inf"))


# Settings


@pytest.mark.parametrize(
    "key,value,expected",
    [
        ("segments", "paragraphs", "('auto', 'sentences', 'punctuation', 'windows')"),
        ("window", 0, "1 or more"),
        ("overlap", -1, "0 to 128"),
        ("overlap", 129, "0 to 128, half the window"),
        ("max_batch_tokens", 0, "1 or more"),
        ("set_tensor", "maybe", "('auto', 'always', 'never')"),
        ("store_layers", "gpu", "('device', 'cpu', 'none')"),
        ("store_dtype", "int8", "('float32', 'float16')"),
        ("cache_layers", "never", "('none', 'training', 'always')"),
        ("cache_memory_mb", -1, "0 or more"),
        ("cache_folder", "a\0b", "a name without NUL"),
    ],
)
def test_the_error_names_a_bad_setting(make_nlp, key, value, expected):
    message = refusal(make_nlp, **{key: value})
    assert message.startswith(f"{key} is {value!r}; expected ")
    assert expected in message


@pytest.mark.parametrize("key,value", [("window", "long"), ("mix", 1), ("bilm", 3)])
def test_the_error_names_a_setting_of_the_wrong_type(make_nlp, key, value):
    with pytest.raises(ValueError, match=key):
        make_nlp(**{key: value})


def test_surprisal_cannot_be_combined_with_stateful(make_nlp):
    message = refusal(make_nlp, surprisal=True, stateful=True)
    assert "both surprisal and stateful" in message


def test_the_error_names_a_missing_source(make_nlp, tmp_path):
    message = refusal(make_nlp(bilm=str(tmp_path / "nowhere")), TEXT)
    assert str(tmp_path / "nowhere") in message


# Batches


def make_texts():
    rng = np.random.default_rng(0)
    lengths = [0, 1, 99, *rng.integers(1, 30, 57)]
    return [" ".join(f"w{n}" for n in rng.integers(0, 99, k)) for k in lengths]


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.slow
def test_results_do_not_depend_on_batches(make_nlp, stateful):
    texts = make_texts()[:30]
    nlp = make_nlp(stateful=stateful, window=20, overlap=5)
    expected = [nlp(text).tensor for text in texts]
    rng = np.random.default_rng(1)
    for batch_size, max_batch_tokens in [(1, 7), (7, 1), (30, 64), (256, 10**6)]:
        nlp = make_nlp(
            stateful=stateful, window=20, overlap=5, max_batch_tokens=max_batch_tokens
        )
        order = rng.permutation(len(texts))
        docs = nlp.pipe((texts[i] for i in order), batch_size=batch_size)
        for i, doc in zip(order, docs, strict=True):
            assert doc.text == texts[i]
            assert_close(doc.tensor, expected[i])


def test_pipe_keeps_order_and_contexts(make_nlp):
    nlp = make_nlp()
    texts = make_texts()
    docs = list(nlp.pipe(texts, batch_size=7))
    assert [doc.text for doc in docs] == texts
    pairs = list(nlp.pipe(zip(texts, range(60)), as_tuples=True, batch_size=7))
    assert [(doc.text, n) for doc, n in pairs] == list(zip(texts, range(60)))
    for doc, (other, _) in zip(docs, pairs):
        assert_close(other.tensor, doc.tensor)


def test_pipe_takes_only_one_batch_from_the_stream(make_nlp):
    nlp = make_nlp()
    taken = []
    stream = (taken.append(n) or nlp.make_doc(f"text {n}") for n in range(50))
    docs = nlp.get_pipe("elmo").pipe(stream, batch_size=4)
    assert next(docs).text == "text 0"
    assert len(taken) == 4


def test_results_are_the_same_in_memory_zones(make_nlp):
    nlp = make_nlp()
    expected = nlp(TEXT).tensor
    for _ in range(2):
        with nlp.memory_zone():
            found = nlp(TEXT).tensor
        assert_close(found, expected)


# Processes


def ignore(name, component, docs, error):
    pass


def make_sentences(nlp, n):
    for k in range(n):
        words = ["A", "sentence", str(k), "."]
        yield Doc(nlp.vocab, words=words * 2, sent_starts=([True] + [False] * 3) * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_results_do_not_depend_on_processes(make_nlp):
    """Forked processes. Spawned ones are tested in test_doc_tensor.py."""
    nlp = make_nlp(segments="sentences")
    nlp.set_error_handler(ignore)
    expected = list(nlp.pipe(make_sentences(nlp, 6)))
    docs = [nlp.make_doc("no boundaries"), *make_sentences(nlp, 6)]
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("fork", force=True)
    try:
        found = list(nlp.pipe(docs, n_process=2, batch_size=4))
    finally:
        multiprocessing.set_start_method(before, force=True)
    assert [doc.text for doc in found] == [doc.text for doc in expected]
    for doc, other in zip(found, expected):
        assert_close(doc.tensor, other.tensor)
        assert_close(doc._.elmo.layers, other._.elmo.layers)
        assert_close(doc[0]._.elmo, other[0]._.elmo)


@pytest.mark.parametrize("used", [False, True])
def test_a_component_can_be_pickled(make_nlp, used):
    nlp = make_nlp(mix=[0.0, 0.0, 1.0], window=4, overlap=2, store_layers="none")
    nlp.set_error_handler(ignore)
    if used:
        nlp(TEXT)
    other = pickle.loads(pickle.dumps(nlp.get_pipe("elmo")))
    doc = other(nlp.make_doc(TEXT))
    assert_close(doc.tensor, nlp(TEXT).tensor)
    assert "not stored" in refusal(lambda: doc._.elmo.layers)
    assert other.name == "elmo"
    assert other.get_error_handler() is ignore


# Errors


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_a_bad_doc_loses_only_itself(make_nlp, batch_size):
    nlp = make_nlp(segments="sentences")
    docs = [*make_sentences(nlp, 5), nlp.make_doc("no boundaries")]
    docs = docs[3:] + docs[:3]
    with pytest.raises(ValueError, match="no sentence boundaries"):
        list(nlp.pipe(docs, batch_size=batch_size))
    errors = []
    nlp.set_error_handler(lambda *args: errors.append(args))
    found = list(nlp.pipe(docs, batch_size=batch_size))
    assert list(map(id, found)) == list(map(id, docs[:2] + docs[3:]))
    assert all(doc.tensor.any() for doc in found)
    ((name, component, lost, error),) = errors
    assert (name, component, lost) == ("elmo", nlp.get_pipe("elmo"), [docs[2]])
    assert "no sentence boundaries" in str(error)
