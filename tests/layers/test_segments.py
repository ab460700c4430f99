"""Test how docs are cut into segments, and which segment gives a token its vectors."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_elmo.layers.segments import windows

TEXT = "The cat sat . It saw a very old dog . The dog slept until noon . Done ."


def words_of(tokens):
    return [token.text for token in tokens if not token.is_space]


def slow_layers(bilm, doc, sentences, window=256, overlap=64):
    """Compute the layers of a doc with one call of the biLM per window.

    RETURNS (np.ndarray): (n_tokens, n_layers, width), zeros for whitespace.
    """
    width = bilm.config.width
    layers = np.zeros((len(doc), bilm.config.lstm.n_layers + 1, width), np.float32)
    for sentence in sentences:
        tokens = [token for token in sentence if not token.is_space]
        for begin, end, first, last in windows(len(tokens), window, overlap).tolist():
            found = bilm.embed([words_of(tokens[begin:end])])[0]
            for k in range(first, last):
                layers[tokens[k].i] = found[:, k - begin]
    return layers


def assert_layers(doc, expected):
    layers = doc._.elmo.layers
    assert layers.shape == expected.shape
    np.testing.assert_allclose(layers, expected, atol=1e-6)
    np.testing.assert_allclose(doc.tensor, expected.mean(axis=1), atol=1e-6)


# Windows


@st.composite
def sizes(draw):
    size = draw(st.integers(1, 40))
    return draw(st.integers(1, 200)), size, draw(st.integers(0, size // 2))


@given(sizes())
def test_vectors_come_from_the_window_with_most_context(sizes):
    n, size, overlap = sizes
    found = windows(*sizes).tolist()
    depths = [[] for _ in range(n)]
    taken = [[] for _ in range(n)]
    for begin, end, first, last in found:
        assert 0 <= begin <= first <= last <= end <= n
        assert end - begin <= size
        for k in range(begin, end):
            depth = min(k - begin, end - 1 - k)
            depths[k].append(depth)
            if first <= k < last:
                taken[k].append(depth)
    assert all(len(depths) == 1 for depths in taken)
    assert [depths[0] for depths in taken] == [max(depths) for depths in depths]
    for (_, end, _, _), (begin, _, _, _) in zip(found, found[1:]):
        assert end - begin >= overlap
    if overlap or n % size == 0:
        assert all(end - begin == min(n, size) for begin, end, _, _ in found)


def test_there_are_no_more_windows_than_needed():
    assert len(windows(256, 256, 64)) == 1
    assert len(windows(257, 256, 64)) == 2
    assert len(windows(256 + 192, 256, 64)) == 2
    assert len(windows(256 + 193, 256, 64)) == 3


@pytest.mark.parametrize("window,overlap", [(8, 3), (8, 0), (1, 0), (256, 64)])
def test_a_doc_without_sentences_is_cut_into_windows(tiny, make_nlp, window, overlap):
    nlp = make_nlp(window=window, overlap=overlap)
    doc = nlp(TEXT.replace("very", "very  ").replace("noon", "noon\n\n"))
    assert sum(token.is_space for token in doc) == 2
    assert_layers(doc, slow_layers(tiny.bilm, doc, [doc], window, overlap))


def test_long_sentences_are_cut_into_windows(tiny, make_nlp):
    doc = make_nlp("sentencizer", window=4, overlap=2)(TEXT)
    assert max(len(sentence) for sentence in doc.sents) > 4
    assert_layers(doc, slow_layers(tiny.bilm, doc, doc.sents, 4, 2))


# Sentences


@pytest.mark.parametrize("segments", ["auto", "sentences"])
def test_sentences_are_segments_where_boundaries_are_set(tiny, make_nlp, segments):
    doc = make_nlp("sentencizer", segments=segments)(TEXT)
    assert len(list(doc.sents)) == 4
    assert_layers(doc, slow_layers(tiny.bilm, doc, doc.sents))


@pytest.mark.parametrize("ends", [".", "!?", "...", "\n", "다 .", '. "'])
def test_punctuation_ends_sentences(tiny, make_nlp, ends):
    """Compare with spaCy's sentencizer, which pretraining imitates too."""
    text = TEXT.replace(" . ", f" {ends} ")
    doc = make_nlp(segments="punctuation")(text)
    assert not doc.has_annotation("SENT_START")
    sentences = Sentencizer()(doc.copy()).sents
    assert_layers(doc, slow_layers(tiny.bilm, doc, sentences))


def test_punctuation_ignores_sentence_boundaries(make_nlp):
    nlp = make_nlp(segments="punctuation")
    doc = nlp.make_doc(TEXT)
    for token in doc:
        token.is_sent_start = token.i % 2 == 0
    np.testing.assert_array_equal(nlp(doc).tensor, nlp(TEXT).tensor)
    assert nlp("").tensor.shape == (0, 10)


def test_windows_ignore_sentence_boundaries(tiny, make_nlp):
    doc = make_nlp("sentencizer", segments="windows")(TEXT)
    assert_layers(doc, slow_layers(tiny.bilm, doc, [doc]))


@pytest.mark.parametrize("segments", ["auto", "sentences"])
def test_some_boundaries_are_enough(tiny, make_nlp, segments):
    nlp = make_nlp(segments=segments)
    doc = nlp.make_doc(TEXT)
    doc[4].is_sent_start = True
    for k in (0, 8):
        doc[k].is_sent_start = False
    assert [sentence.start for sentence in doc.sents] == [0, 4]
    assert not doc.has_annotation("SENT_START", require_complete=True)
    assert_layers(nlp(doc), slow_layers(tiny.bilm, doc, [doc[:4], doc[4:]]))


def test_sentences_can_begin_with_whitespace(tiny, make_nlp):
    nlp = make_nlp()
    words = ["\n", "A", "b", "\n", "\n", "c", " ", "d", "e", "\n"]
    starts = [True, False, False, True, False, False, False, True, False, True]
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=starts))
    assert len(list(doc.sents)) == 4
    assert_layers(doc, slow_layers(tiny.bilm, doc, [doc[:3], doc[3:7], doc[7:9]]))


def test_a_boundary_within_whitespace_cuts_once(tiny, make_nlp):
    nlp = make_nlp()
    doc = Doc(nlp.vocab, words=["a", "\n", "\n", "b"], sent_starts=[True] * 4)
    assert_layers(nlp(doc), slow_layers(tiny.bilm, doc, [doc[:1], doc[3:]]))


def test_sentences_can_be_required(make_nlp):
    nlp = make_nlp(segments="sentences")
    with pytest.raises(ValueError, match="no sentence boundaries") as caught:
        nlp(TEXT)
    message = str(caught.value)
    assert "\n" not in message
    assert "segments is 'sentences'" in message and "'sentencizer'" in message
    # Docs with at most one token need no boundaries.
    assert nlp("").tensor.shape == (0, 10)
    assert nlp("One").tensor.any()


def test_sentences_can_come_from_a_user_hook(make_nlp):
    nlp = make_nlp(segments="sentences")
    hooked = Doc(nlp.vocab, words=["a", "b", "c", "d"])
    hooked.user_hooks["sents"] = lambda doc: [doc[:2], doc[2:]]
    plain = Doc(nlp.vocab, words=["a", "b", "c", "d"], sent_starts=[1, 0, 1, 0])
    elmo = nlp.get_pipe("elmo")
    assert np.allclose(elmo(hooked).tensor, elmo(plain).tensor, atol=1e-6)


# Whitespace


@pytest.mark.parametrize("before", [(), ("sentencizer",)])
@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n \t", " a b", "a b  ", "a  b", "\n a\n b \n\n c .\n\nd e \n", "a b"],
)
def test_whitespace_has_zeros(tiny, make_nlp, before, text):
    doc = make_nlp(*before)(text)
    is_space = np.array([token.is_space for token in doc], dtype=bool)
    assert doc.tensor.shape == (len(doc), 10)
    assert doc._.elmo.layers.shape == (len(doc), 3, 10)
    assert not doc._.elmo.layers[is_space].any()
    assert not doc.tensor[is_space].any()
    sentences = [words_of(sentence) for sentence in (doc.sents if before else [doc])]
    expected = tiny.bilm.embed([words for words in sentences if words])
    if expected:
        found = doc._.elmo.layers[~is_space]
        expected = np.concatenate(expected, axis=1).transpose(1, 0, 2)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_bilm_never_sees_whitespace(make_nlp, monkeypatch):
    nlp = make_nlp("sentencizer")
    bilm = nlp.get_pipe("elmo").model.shims[0].bilm
    run, seen = bilm.run, []
    monkeypatch.setattr(
        bilm,
        "run",
        lambda rows, *args, **kw: seen.extend(rows) or run(rows, *args, **kw),
    )
    list(nlp.pipe(["a \n b . \n\n c", "\n", "", " d"]))
    assert sorted(seen) == [["a", "b", "."], ["c"], ["d"]]


# States


def stateful_layers(bilm, segments):
    """Compute the layers of one doc with a call per segment that continues the state.

    segments (Iterable[list[str]]): The words of each segment.
    RETURNS (np.ndarray): (n_words, n_layers, width)
    """
    bilm.reset_state()
    found = [bilm.embed([segment], stateful=True)[0] for segment in segments]
    bilm.reset_state()
    return np.concatenate(found, axis=1).transpose(1, 0, 2)


TEXTS = [TEXT, "", "One sentence .", "A b . C d . E .", "Is \n it ? No . No !", TEXT]


@pytest.mark.parametrize("max_batch_tokens", [1, 2048])
def test_states_are_carried_from_sentence_to_sentence_of_a_doc(
    tiny, make_nlp, max_batch_tokens
):
    nlp = make_nlp("sentencizer", stateful=True, max_batch_tokens=max_batch_tokens)
    plain = make_nlp("sentencizer")
    for doc in nlp.pipe(TEXTS):  # in one batch
        if len(doc):
            words = [token.i for token in doc if not token.is_space]
            expected = stateful_layers(tiny.bilm, map(words_of, doc.sents))
            found = doc._.elmo.layers[words]
            np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(nlp(doc.text).tensor, doc.tensor, atol=1e-6)
    first, second = list(doc.sents)[:2]
    other = plain(doc.text)
    np.testing.assert_allclose(
        doc.tensor[: first.end], other.tensor[: first.end], atol=1e-6
    )
    carried = doc.tensor[first.end : second.end] - other.tensor[first.end : second.end]
    assert np.abs(carried).max() > 1e-3


def test_states_are_carried_from_window_to_window(tiny, make_nlp):
    doc = make_nlp(stateful=True, window=4, overlap=2)(TEXT)
    words = words_of(doc)
    segments = [words[begin : begin + 4] for begin in range(0, len(words), 4)]
    expected = stateful_layers(tiny.bilm, segments)
    np.testing.assert_allclose(doc._.elmo.layers, expected, atol=1e-6)


# A long doc

LONG = """
import sys
import spacy, torch
from spacy.tokens import Doc
from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig

def kilobytes(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))

folder, n_tokens = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
encoder = BytesConfig(char_dim=4, filters=[[1, 8]])
BiLM(BiLMConfig(encoder, LSTMConfig(dim=16, projection_dim=32))).save(folder)
config = {"bilm": folder, "store_layers": "none", "max_batch_tokens": 16384}
nlp = spacy.blank("en")
elmo = nlp.add_pipe("elmo", config=config)
elmo(nlp.make_doc("Something short ."))
doc = Doc(nlp.vocab, words=[f"w{n % 5000}" for n in range(n_tokens)])
before = kilobytes("VmRSS:")
elmo(doc)
assert doc.tensor.shape == (n_tokens, 64) and doc.tensor.any(axis=1).all()
print(kilobytes("VmHWM:") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_layers_of_a_long_doc_are_never_all_in_memory(tmp_path):
    n_tokens = 200_000
    command = [sys.executable, "-c", LONG, str(tmp_path), str(n_tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    tensor = n_tokens * 64 * 4  # bytes: 51 MB, and as many for doc._.elmo
    layers = 3 * tensor
    assert int(done.stdout) * 1024 < layers + tensor
