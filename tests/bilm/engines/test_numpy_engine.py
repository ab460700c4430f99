"""The engine on arrays computes the same as the torch engine, the slow reference and
the programs that made the golden vectors."""

import copy
import json
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.native_models import VOCAB, every_kind, make_bilm
from helpers.random_models import CALLS, for_random_models
from helpers.vectors import A, B, C, difference, same_bits

from spacy_elmo.bilm import NumpyBiLM, load_bilm
from spacy_elmo.bilm.engines import (
    blas_threads,
    numpy_engine,
    numpy_lstm,
    numpy_softmax,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"


def assert_agrees(pair, calls, tolerance=1e-5):
    """Compare with the torch engine and with the reference, stateless and stateful."""
    bilm, reference = pair
    on_arrays = NumpyBiLM(bilm.data)
    state = None
    for sentences in calls:
        found = on_arrays.embed(sentences)
        assert difference(found, reference.embed(sentences)[0]) <= tolerance
        assert difference(found, bilm.embed(sentences)) <= tolerance
        expected, state = reference.embed(sentences, state)
        found = on_arrays.embed(sentences, stateful=True)
        assert difference(found, expected) <= tolerance
        assert difference(found, bilm.embed(sentences, stateful=True)) <= tolerance


@for_random_models
def test_random_models_agree(pair, calls):
    assert_agrees(pair, calls)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lstm": {"n_layers": 1}},
        {"lstm": {"n_layers": 3, "use_skip_connections": False}},
        {"lstm": {"cell_clip": 0.3, "proj_clip": 0.2}},
        {"lstm": {"cell_clip": None, "proj_clip": None}},
        {"char_cnn": {"activation": "tanh", "n_highway": 2}},
        {"char_cnn": {"filters": [[1, 5]], "n_highway": 0}},
        {"char_cnn": {"filters": [[6, 5], [2, 3]], "max_characters_per_token": 6}},
        {"char_cnn": {"max_characters_per_token": 50}},
        {"lstm": {"dim": 5, "projection_dim": 5}, "lstm_projection": False},
        {"n_rows": 262},
    ],
    ids=str,
)
def test_any_options_agree(random_pair, options):
    assert_agrees(random_pair(5, **options), CALLS)


def test_published_size_agrees(published, sentences):
    found = NumpyBiLM(published.data).embed(sentences)
    assert difference(found, published.embed(sentences)) <= 1e-5


@every_kind
def test_every_encoder_agrees(kind):
    bilm = make_bilm(kind)
    on_arrays = NumpyBiLM(bilm.data)
    sentences = [["나는", "cab", "unheard", "눈"], [], ["bad"], ["a" * 70, "bad", ""]]
    assert difference(on_arrays.embed(sentences), bilm.embed(sentences)) <= 1e-5
    for _ in range(2):
        found = on_arrays.embed(sentences, stateful=True)
        assert difference(found, bilm.embed(sentences, stateful=True)) <= 1e-5
    for sentence, expected in zip(sentences, on_arrays.embed(sentences)):
        alone = NumpyBiLM(bilm.data).embed([sentence])
        assert difference(alone, [expected]) <= 1e-6


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
@pytest.mark.slow
def test_probabilities_agree(kind, monkeypatch):
    monkeypatch.setattr(numpy_softmax, "MAX_LOGITS", 3 * len(VOCAB))
    bilm = make_bilm(f"bytes-{kind}")
    on_arrays = NumpyBiLM(bilm.data)
    sentence = [*VOCAB[::-1], "unheard-of"]
    for position in (0, 3, len(sentence) - 1):
        expected = dict(bilm.predict(sentence, position, len(VOCAB)))
        found = dict(on_arrays.predict(sentence, position, len(VOCAB)))
        assert found == pytest.approx(expected, abs=1e-6) and len(found) > 3
    sentences = [sentence, [], VOCAB[3:5]]
    expected = bilm.surprisal(sentences)
    assert difference(on_arrays.surprisal(sentences), expected) <= 1e-4
    on_arrays.drop_softmax()
    with pytest.raises(ValueError, match="has no softmax with a vocabulary"):
        on_arrays.surprisal(sentences)


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize(
    "name, program",
    [
        ("bilm", "allennlp"),
        ("bilm", "simple_elmo"),
        ("manylangs", "elmoformanylangs"),
    ],
)
def test_golden_vectors(name, program, stateful):
    folder = FIXTURES / name
    bilm = load_bilm(folder, engine="numpy")
    kind = "stateful" if stateful else "stateless"
    with np.load(folder / f"vectors-{program}.npz") as file:
        expected = dict(file)
    batches = json.loads((folder / "sentences.json").read_text("utf8"))
    for number, batch in enumerate(batches):
        for row, vectors in enumerate(bilm.embed(batch, stateful=stateful)):
            name = f"{kind}/{number}/{row}"
            np.testing.assert_allclose(vectors, expected[name], rtol=0, atol=5e-6)


# Independence and repetition, as test_independence.py has them for torch


def assert_independent(bilm, sentences, tolerance):
    together = bilm.embed(sentences)
    for max_batch_tokens in (1, 100):
        found = bilm.embed(sentences, max_batch_tokens=max_batch_tokens)
        assert difference(found, together) <= tolerance
    reversed_order = bilm.embed([["more"] * 30, *sentences[::-1], ["else"]])[-2:0:-1]
    assert difference(reversed_order, together) <= tolerance
    for sentence, expected in zip(sentences, together):
        bilm.clear_cache()
        assert difference(bilm.embed([sentence]), [expected]) <= tolerance


@pytest.mark.slow
def test_vectors_do_not_depend_on_the_batch(tiny, published, sentences):
    assert_independent(NumpyBiLM(tiny.bilm.data), sentences, 1e-6)
    assert_independent(NumpyBiLM(published.data), sentences, 1e-5)


@pytest.mark.parametrize("cache_words", [0, 3, 12, 2**15])
def test_the_same_call_gives_the_same_bits(published, cache_words):
    bilm = NumpyBiLM(published.data)
    bilm.cache_words = cache_words
    for sentences in (A, B, A[:1], C, A):
        first = bilm.embed(sentences)
        assert same_bits(bilm.embed(sentences), first)


def test_long_sentences_and_many_rows_agree(tiny, monkeypatch):
    """Tokens and rows are divided into groups; here, into many."""
    monkeypatch.setattr(numpy_lstm, "TOKENS_AT_A_TIME", 5)
    monkeypatch.setattr(numpy_lstm, "CACHE_BYTES", 1)
    sentences = [[f"w{k % 7}" for k in range(n)] for n in (30, 9, 9, 4, 1)]
    found = NumpyBiLM(tiny.bilm.data).embed(sentences)
    assert difference(found, tiny.bilm.embed(sentences)) <= 1e-5
    found = NumpyBiLM(tiny.bilm.data).embed(sentences[:1])
    assert difference(found, tiny.bilm.embed(sentences[:1])) <= 1e-5


def test_repeated_words_agree(tiny, monkeypatch):
    """The inputs of repeated words are multiplied once."""
    computed = []
    original = numpy_lstm.LayerWeights.from_inputs

    def count(weights, x):
        computed.append(len(x))
        return original(weights, x)

    monkeypatch.setattr(numpy_lstm.LayerWeights, "from_inputs", count)
    sentences = [["a", "b", "a", "c"] * 4, ["c", "b", "a"] * 5]
    bilm = NumpyBiLM(tiny.bilm.data)
    bilm.embed([["x"]])  # computes the states after the boundaries
    computed.clear()
    found = bilm.embed(sentences)
    assert difference(found, tiny.bilm.embed(sentences)) <= 1e-5
    assert sorted(computed) == [3, 3, 31, 31]


def test_huge_gates_neither_warn_nor_fail(tiny, recwarn):
    data = copy.deepcopy(tiny.bilm.data)
    for name in data.arrays:
        data.arrays[name] = data.arrays[name] * 1000
    found = NumpyBiLM(data).embed([["a", "b"], ["c"]])
    assert all(np.isfinite(x).all() for x in found)
    assert len(recwarn) == 0


# The model


def test_arrays_are_contiguous_and_share_no_memory(tiny, sentences):
    bilm = NumpyBiLM(tiny.bilm.data)
    arrays = bilm.embed([*sentences, ["twice"], ["twice"]])
    kept = copy.deepcopy(arrays)
    for number, array in enumerate(arrays):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous and array.flags.writeable
        assert array.base is None
        array[:] = np.nan
        assert same_bits(arrays[number + 1 :], kept[number + 1 :])


def test_run_has_no_side_effects(tiny):
    bilm = NumpyBiLM(tiny.bilm.data)
    first, state = bilm.run(B, bilm.zero_state(0))
    kept = copy.deepcopy(state)
    second, later = bilm.run(C, state)
    assert np.array_equal(kept.h, state.h) and np.array_equal(kept.c, state.c)
    assert not np.array_equal(later.h, state.h)
    assert same_bits(bilm.run(C, state)[0], second)
    expected = [x.transpose(1, 0, 2) for x in bilm.embed(B)]
    assert difference(first, expected) <= 1e-6


def test_copies_and_pickles_give_the_same_vectors(tiny):
    bilm = NumpyBiLM(tiny.bilm.data)
    expected = bilm.embed(A)
    bilm.embed(A, stateful=True)
    for other in (copy.deepcopy(bilm), pickle.loads(pickle.dumps(bilm))):
        assert difference(other.embed(A, stateful=True), expected) <= 1e-6


def test_saved_and_loaded_again(tiny, tmp_path):
    bilm = NumpyBiLM(tiny.bilm.data)
    bilm.save(tmp_path)
    for engine in ("numpy", "torch", "auto"):
        found = load_bilm(tmp_path, engine=engine).embed(B)
        assert difference(found, bilm.embed(B)) <= 1e-6


def test_engines_are_checked(tiny_folder):
    with pytest.raises(ValueError, match="engine is 'jax'; expected one of"):
        load_bilm(tiny_folder, engine="jax")
    for more in ({"device": "cuda"}, {"precision": "int8"}):
        with pytest.raises(ValueError, match="with engine 'numpy'; expected"):
            load_bilm(tiny_folder, engine="numpy", **more)


# Threads


@pytest.fixture
def two_blas_threads():
    """Let numpy use two threads, even on a machine with one core."""
    with blas_threads.find_blas().limit(limits=2):
        counts = [lib.num_threads for lib in blas_threads.find_blas().lib_controllers]
        if max(counts, default=1) < 2:
            pytest.skip("this numpy computes products with one thread")
        yield


def blas_counts():
    return [lib.num_threads for lib in blas_threads.find_blas().lib_controllers]


@pytest.mark.parametrize("parallel_from", [0, 2**60])
@pytest.mark.parametrize("cache_words", [5, 2**15])
def test_embed_from_many_threads(
    tiny, sentences, monkeypatch, two_blas_threads, parallel_from, cache_words
):
    monkeypatch.setattr(numpy_engine, "PARALLEL_FROM", parallel_from)
    bilm = NumpyBiLM(tiny.bilm.data)
    expected = [bilm.embed([sentence])[0] for sentence in sentences]
    bilm.cache_words = cache_words
    before = blas_counts()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            calls = [[sentence] for sentence in sentences * 4]
            found = [x[0] for x in pool.map(bilm.embed, calls)]
    finally:
        sys.setswitchinterval(interval)
    assert difference(found, expected * 4) <= 1e-6
    assert blas_counts() == before


def test_products_use_one_thread_within_a_call(tiny, two_blas_threads, monkeypatch):
    counts = []
    bilm = NumpyBiLM(tiny.bilm.data)

    def run(*args, original=numpy_lstm.CellStep.__call__):
        counts.append(max(blas_counts()))
        return original(*args)

    monkeypatch.setattr(numpy_lstm.CellStep, "__call__", run)
    bilm.embed(A)
    assert set(counts) == {1} and max(blas_counts()) == 2


def test_two_directions_run_in_two_threads(tiny, two_blas_threads, monkeypatch):
    names = set()
    monkeypatch.setattr(numpy_engine, "PARALLEL_FROM", 0)

    def run(*args, original=numpy_lstm.CellStep.__call__):
        names.add(threading.current_thread().name)
        return original(*args)

    monkeypatch.setattr(numpy_lstm.CellStep, "__call__", run)
    NumpyBiLM(tiny.bilm.data).embed(A)
    assert all(name.startswith("spacy-elmo") for name in names) and names


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_embed_in_a_forked_process(tiny, sentences, two_blas_threads, monkeypatch):
    monkeypatch.setattr(numpy_engine, "PARALLEL_FROM", 0)
    bilm = NumpyBiLM(tiny.bilm.data)
    expected = bilm.embed(sentences)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    # Fork while another thread computes the vectors of words: the fork waits for it.
    computing, go_on = threading.Event(), threading.Event()
    encode = bilm.word_ids.encode

    def wait_and_encode(keys):
        computing.set()
        assert go_on.wait(60)
        return encode(keys)

    monkeypatch.setattr(bilm.word_ids, "encode", wait_and_encode)
    other = threading.Thread(target=bilm.embed, args=([["unseen"]],))
    other.start()
    assert computing.wait(60)

    def work():
        sender.send(bilm.embed(sentences))

    process = context.Process(target=work, daemon=True)
    threading.Timer(0.1, go_on.set).start()
    process.start()
    try:
        assert go_on.is_set()
        assert receiver.poll(30), "the forked process hangs"
        assert difference(receiver.recv(), expected) <= 1e-6
    finally:
        process.kill()
        process.join()
        other.join()
