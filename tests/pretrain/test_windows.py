"""Divide streams of text into windows, and encode windows as tensors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, SoftmaxConfig
from spacy_elmo.pretrain import windows
from spacy_elmo.pretrain.corpus import Stream
from spacy_elmo.pretrain.vocab import softmax_numbers
from spacy_elmo.pretrain.windows import (
    Epochs,
    WindowEncoder,
    WordNumbers,
    reverse_sentences,
)


def make_stream(n_sentences=60, n_words=40, seed=0):
    """Make a stream of random sentences of 1 to 8 words, with three sentences per
    block."""
    rng = np.random.default_rng(seed)
    tokens, blocks = [], []
    for number in range(n_sentences):
        if number % 3 == 0:
            blocks.append(len(tokens))
        tokens += [0, *rng.integers(1, n_words + 1, rng.integers(1, 9)).tolist()]
    return Stream(np.array(tokens, dtype=np.int32), np.array(blocks))


def numbered(stream):
    """Return the stream with the index of each word as its number, so that no word
    occurs twice."""
    places = np.arange(len(stream.tokens), dtype=np.int32)
    return Stream(np.where(stream.tokens == 0, 0, places), stream.blocks)


def rows_of(epochs, epoch, *, part="inputs"):
    """Return all windows of an epoch, joined: (2, n_windows * n_steps, n_rows)."""
    found = [epochs.window(epoch, n) for n in range(epochs.n_windows)]
    return np.concatenate([getattr(window, part) for window in found], 1)


def in_order(stream, epochs, epoch):
    """Return the tokens of the text in the order of an epoch, (n_tokens,)."""
    ends = np.append(stream.blocks[1:], len(stream.tokens))
    pieces = [stream.tokens[a:b] for a, b in zip(stream.blocks, ends)]
    rng = np.random.default_rng([epochs.seed, epoch])
    return np.concatenate([pieces[n] for n in rng.permutation(len(pieces))])


# Epochs


@pytest.mark.parametrize("n_rows, n_steps", [(1, 1), (1, 20), (3, 7), (8, 5)])
def test_every_place_is_read_once(n_rows, n_steps):
    stream = numbered(make_stream())
    epochs = Epochs(stream, n_rows=n_rows, n_steps=n_steps, seed=0)
    read = rows_of(epochs, 0)
    n_left = len(stream.tokens) - read[0].size
    assert 0 <= n_left < n_rows * n_steps + n_rows
    for direction in read:
        words = direction[direction != 0]
        assert len(set(words.tolist())) == len(words)
        assert set(words.tolist()) <= set(stream.tokens.tolist())
        assert len(words) >= np.count_nonzero(stream.tokens) - n_left


def test_rows_are_pieces_of_the_text_one_after_another():
    stream = numbered(make_stream())
    epochs = Epochs(stream, n_rows=4, n_steps=6, seed=3)
    text = in_order(stream, epochs, 2)
    inputs, targets = rows_of(epochs, 2), rows_of(epochs, 2, part="targets")
    length = len(text) // 4
    n_steps = epochs.n_windows * 6
    ahead = np.append(text, 0)
    for row in range(4):
        start = row * length
        np.testing.assert_array_equal(inputs[0, :, row], text[start : start + n_steps])
        np.testing.assert_array_equal(
            targets[0, :, row], ahead[start + 1 : start + n_steps + 1]
        )


def test_backward_reads_each_sentence_from_its_end():
    stream = numbered(make_stream())
    epochs = Epochs(stream, n_rows=4, n_steps=6, seed=3)
    text = in_order(stream, epochs, 1)
    turned = np.append(naive_turn(text), 0)
    inputs, targets = rows_of(epochs, 1), rows_of(epochs, 1, part="targets")
    length, n_steps = len(text) // 4, epochs.n_windows * 6
    for row in range(4):
        place = slice(row * length, row * length + n_steps)
        np.testing.assert_array_equal(inputs[1, :, row], turned[place])
        np.testing.assert_array_equal(targets[1, :, row], turned[1:][place])


def test_after_the_text_comes_a_boundary():
    stream = Stream(np.array([0, 1, 2, 0, 3, 4], np.int32), np.array([0]))
    window = Epochs(stream, n_rows=1, n_steps=6, seed=0).window(0, 0)
    assert window.inputs[:, :, 0].tolist() == [[0, 1, 2, 0, 3, 4], [0, 2, 1, 0, 4, 3]]
    assert window.targets[:, :, 0].tolist() == [[1, 2, 0, 3, 4, 0], [2, 1, 0, 4, 3, 0]]


def test_orders_differ_by_epoch_and_seed_only():
    stream = make_stream()

    def read(seed, epoch):
        return rows_of(Epochs(stream, n_rows=3, n_steps=7, seed=seed), epoch).tolist()

    assert read(0, 0) == read(0, 0)
    assert len({str(read(*key)) for key in [(0, 0), (0, 1), (1, 0), (1, 1)]}) == 4
    # Earlier reads do not change a window: resuming relies on this.
    epochs = Epochs(stream, n_rows=3, n_steps=7, seed=0)
    later = epochs.window(1, 4)
    epochs.window(0, 2)
    np.testing.assert_array_equal(later.inputs, epochs.window(1, 4).inputs)


def test_some_rows_are_those_of_the_whole():
    stream = make_stream()
    whole = rows_of(Epochs(stream, n_rows=6, n_steps=5, seed=0), 1)
    for rows in (slice(0, 3), slice(3, 6), slice(2, 3)):
        part = Epochs(stream, n_rows=6, n_steps=5, seed=0, rows=rows)
        np.testing.assert_array_equal(rows_of(part, 1), whole[:, :, rows])


def test_too_little_text_says_how_much_is_needed():
    with pytest.raises(
        ValueError, match="has 6 words and sentence boundaries; .* = 8 or more"
    ):
        Epochs(
            Stream(np.array([0, 1, 2, 3, 0, 4]), np.array([0])),
            n_rows=2,
            n_steps=4,
            seed=0,
        )


def naive_turn(tokens):
    sentences = []
    for token in tokens:
        if token == 0:
            sentences.append([])
        else:
            sentences[-1].insert(0, token)
    return [token for sentence in sentences for token in (0, *sentence)]


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=8))
def test_turned_sentences(sentences):
    tokens = np.array([t for s in sentences for t in (0, *s)], dtype=np.int32)
    assert reverse_sentences(tokens).tolist() == naive_turn(tokens)


# Tensors

WORDS = ["a", "bb", "눈", "x" * 70, "unheard-of", "c", "d", "ee"]
VOCAB = ["<S>", "</S>", "<UNK>", "눈", "c", "a", "ee", "d", "bb"]
UNKNOWN = {4, 5}  # numbers of WORDS that VOCAB lacks, from 1 on


@pytest.fixture
def bilm():
    torch.manual_seed(0)
    return BiLM(
        BiLMConfig(
            BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]]),
            LSTMConfig(8, 5),
            SoftmaxConfig(len(VOCAB)),
        ),
        vocab=VOCAB,
    )


def feed(bilm, numbers, *, forget=False, **settings):
    outputs, boundaries, _ = softmax_numbers(WORDS, VOCAB)
    window_encoder = WindowEncoder(
        bilm, WORDS, outputs, boundaries, forget=forget, **settings
    )
    return window_encoder.encode(numbers)


@pytest.fixture(params=[1, 3, 128])
def numbers(request, monkeypatch):
    """Return a window with all WORDS, which are encoded in groups of several sizes."""
    monkeypatch.setattr(windows, "GROUP", request.param)
    stream = make_stream(n_words=len(WORDS))
    return Epochs(stream, n_rows=4, n_steps=9, seed=0).window(0, 0)


@pytest.mark.parametrize("even", [False, True])
def test_ids_are_those_of_the_words(bilm, numbers, even):
    window = feed(bilm, numbers, even=even)
    n_ids = len(np.unique(numbers.inputs)) + 1  # 0 stands for two boundaries
    if even:
        last = n_ids - (len(window.ids) - 1) * windows.GROUP
        n_ids += -last % windows.MULTIPLE
        assert all(len(ids) == windows.GROUP for ids in window.ids[:-1])
        assert len(window.ids[-1]) % windows.MULTIPLE == 0
    assert sum(map(len, window.ids)) == n_ids
    vectors = bilm.encoder(*window.ids)[window.tokens]
    expected = {}
    for number, word in enumerate(WORDS, 1):
        begin, own, end = bilm.encoder(bilm.encoder.encode(bilm.word_ids.keys([word])))
        expected[number] = own
    for d, boundary in enumerate((begin, end)):
        for place, number in np.ndenumerate(numbers.inputs[d]):
            found = vectors[d][place]
            torch.testing.assert_close(found, expected.get(int(number), boundary))


def test_targets_are_words_of_the_softmax(bilm, numbers):
    targets = feed(bilm, numbers).targets
    assert targets.dtype == torch.int64
    for d, boundary in enumerate(("</S>", "<S>")):
        for place, number in np.ndenumerate(numbers.targets[d]):
            word = VOCAB[targets[d][place]]
            if number == 0:
                assert word == boundary
            elif number in UNKNOWN:
                assert word == "<UNK>"
            else:
                assert word == WORDS[number - 1]
    assert UNKNOWN <= set(numbers.targets.ravel().tolist())


def test_states_are_forgotten_where_sentences_begin(bilm, numbers):
    assert feed(bilm, numbers).keep is None
    keep = feed(bilm, numbers, forget=True).keep
    assert keep.shape == (9, 4, 1)
    np.testing.assert_array_equal(keep[:, :, 0] == 0, numbers.inputs[0] == 0)
    np.testing.assert_array_equal(keep[:, :, 0] == 0, numbers.inputs[1] == 0)


@pytest.mark.parametrize("tokens", [[0, 0], [1, 2], [3, 0]])
def test_windows_without_words_or_boundaries(bilm, tokens):
    part = np.array([tokens, tokens], dtype=np.int32)[:, :, None]
    window = feed(bilm, WordNumbers(part, part))
    vectors = bilm.encoder(*window.ids)[window.tokens]
    for d in range(2):
        for t, number in enumerate(tokens):
            keys = bilm.word_ids.keys([WORDS[number - 1]])
            key = keys[1] if number else keys[[0, -1][d]]
            own = bilm.encoder(bilm.encoder.encode([key]))[0]
            torch.testing.assert_close(vectors[d, t, 0], own)
