"""The biLM on a fake GPU, which finds mistakes that fail or are slow on a real GPU.

Tensors on the host are real. Tensors on the fake GPU have a shape and a device but no
values. Mixing the two fails, and so does all that makes the host wait for the GPU.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers import windows
from helpers.fake_cuda import fake_cuda

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    Lexicon,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
    load_bilm,
    softmax,
)
from spacy_elmo.bilm.engines import word_cache
from spacy_elmo.bilm.state import State
from spacy_elmo.bilm.training.step import Dropout, train_step
from spacy_elmo.pretrain.optimizers import Adagrad
from spacy_elmo.pretrain.torch_losses import compute_losses

# The biLM reads the addresses of weights to notice changes. Fake tensors have none.
pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of Fake")


FILTERS = [[1, 3], [2, 4]]
ENCODERS = {
    "bytes": BytesConfig(char_dim=3, filters=FILTERS),
    "chars": CharsConfig(char_dim=3, word_dim=2, filters=FILTERS),
    "chars-alone": CharsConfig(char_dim=3, filters=FILTERS),
    "chars-lstm": CharsConfig(reader="lstm", char_dim=3, word_dim=2),
    "words": WordsConfig(dim=4),
}
N_WORDS = 12
# Few and short sentences, as each operation on a fake tensor takes half a millisecond.
SENTENCES = [["bad", "눈"], [], ["unheard"]]


def ids(symbols):
    return {symbol: row for row, symbol in enumerate(symbols)}


def make(kind, head="full"):
    special = ["<bos>", "<eos>", "<bow>", "<eow>", "<oov>", "<pad>"]
    lexicon = Lexicon(ids([*special, *"abcd눈"]), ids([*special, "bad", "cab"]))
    # One test with two layers is enough: all encoders have the same layers above.
    n_layers = 2 if kind == "words" else 1
    config = BiLMConfig(
        encoder=ENCODERS[kind],
        lstm=LSTMConfig(dim=7, projection_dim=5, n_layers=n_layers),
        softmax=SoftmaxConfig(N_WORDS, head, n_samples=5),
    )
    return BiLM(config, lexicon=lexicon)


# Mistakes that are refused


MIXED, HOST_INDEX = "same device|Mismatching", "index on the host"
NO_SIZE = "mask|nonzero|unique"
NO_VALUE, BACK, WAITS = "scalar_dense|numpy", "copy to the host", "copy that waits"
MISTAKES = [
    (MIXED, lambda x, host: x + host),
    (MIXED, lambda x, host: x @ torch.zeros(3, 3)),
    (MIXED, lambda x, host: x.gather(0, host.long())),
    (MIXED, lambda x, host: torch.where(host > 0, x, x)),
    (MIXED, lambda x, host: F.embedding(torch.tensor([0]), x)),
    (MIXED, lambda x, host: x.index_put_([x[0].long()], host)),
    ("index for the host", lambda x, host: host[x[0].long()]),
    (HOST_INDEX, lambda x, host: x[torch.tensor([0, 2])]),
    (HOST_INDEX, lambda x, host: x.__setitem__(torch.tensor([0]), 1.0)),
    (NO_SIZE, lambda x, host: x[x > 0]),
    (NO_SIZE, lambda x, host: x.__setitem__(x[:, 0] > 0, x[0])),
    (NO_SIZE, lambda x, host: x.nonzero()),
    (NO_SIZE, lambda x, host: x.unique()),
    (NO_VALUE, lambda x, host: x.sum().item()),
    (NO_VALUE, lambda x, host: bool(x.any())),
    (NO_VALUE, lambda x, host: x.tolist()),
    (NO_VALUE, lambda x, host: x.numpy()),
    (BACK, lambda x, host: x.cpu()),
    (BACK, lambda x, host: host.copy_(x)),
    (WAITS, lambda x, host: host.to(x.device)),
    (WAITS, lambda x, host: x.__setitem__(0, host[0])),
    (WAITS, lambda x, host: torch.tensor([1, 2], device=x.device)),
]


@pytest.mark.parametrize("reason, mistake", MISTAKES)
def test_mistakes_are_refused(gpu, reason, mistake):
    x = torch.ones(3, 3, device=gpu.device)
    with pytest.raises((RuntimeError, AssertionError), match=reason):
        with gpu.never_waits():
            mistake(x, torch.ones(3, 3))


def test_mistakes_are_refused_in_the_backward_pass(gpu):
    class Careless(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.full((3,), 2.0)

    x = torch.ones(3, device=gpu.device, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad.device == gpu.device
    with pytest.raises(RuntimeError, match="same device"):
        Careless.apply(x).sum().backward()


# Training


def loss_of(bilm, batch, state):
    """Compute the loss of pretraining and the new state. The targets are on the host,
    from all clusters of the adaptive softmax."""
    layers, state = bilm(batch, state)
    targets = torch.arange(batch.tokens.numel()) % N_WORDS
    sides = layers[-1].flatten(0, 1).chunk(2, dim=1)  # (n, proj) each
    return sum(bilm.softmax.loss(side, targets) for side in sides), state


# Encoders and softmaxes do not interact, so not all combinations are needed.
PAIRS = [(kind, "full") for kind in ENCODERS]
PAIRS += [("words", "sampled"), ("words", "adaptive")]


@pytest.mark.parametrize("kind, head", PAIRS)
@pytest.mark.slow
def test_training_never_waits(gpu, kind, head):
    bilm = make(kind, head).to(gpu.device)
    zeros = State.zeros(bilm.config.lstm, len(SENTENCES), bilm.weight)
    with gpu.never_waits():
        batch = bilm.prepare(SENTENCES)
        for state in (None, zeros):
            loss, state = loss_of(bilm, batch, state)
            loss.backward()
            assert loss.device == state.h.device == state.c.device == gpu.device
    assert bilm.device == gpu.device
    for name, weight in bilm.named_parameters():
        assert weight.grad is not None and weight.grad.device == gpu.device, name


@pytest.mark.parametrize("head", ["full", "sampled", "adaptive"])
@pytest.mark.slow
def test_a_step_of_pretraining_never_waits(gpu, head):
    """The host waits only afterwards, for the norm of the gradients and the losses."""
    bilm = windows.make_bilm(head, dtype=torch.float32).to(gpu.device)
    dropout = Dropout(0.1, 0, gpu.device)
    with gpu.never_waits():
        for frozen in (False, True):
            window = windows.make_window(bilm, n_steps=2, dtype=torch.float32)
            state = windows.make_state(bilm)
            step = train_step(bilm, window, state, dropout, frozen=frozen)
            assert step.losses.device == step.state.h.device == gpu.device
    optimizer = Adagrad(dict(bilm.named_parameters()))
    with gpu.never_waits():
        for name, gradient in step.gradients.items():
            optimizer.step(name, gradient, 0.1)


@pytest.mark.parametrize("head", ["full", "sampled", "adaptive"])
def test_an_evaluation_waits_once_a_batch(gpu, head):
    bilm = windows.make_bilm(head, dtype=torch.float32, n_layers=1).to(gpu.device)
    window_encoder, numbers = windows.make_numbers(bilm, n_steps=2)
    state = windows.make_state(bilm)
    mask = np.array([[True] * windows.N_ROWS, [False] * windows.N_ROWS])
    gpu.reset()
    losses, state = compute_losses(bilm, window_encoder, numbers, mask, state)
    assert len(losses) == 2 and state.h.device == gpu.device
    assert gpu.to_host == [(2,)] and len(gpu.waits) == 1


@pytest.mark.parametrize("head", ["full", "sampled", "adaptive"])
def test_softmax_in_chunks_with_targets_on_either_side(gpu, monkeypatch, head):
    monkeypatch.setattr(softmax, "MAX_LOGITS", 40)
    monkeypatch.setattr(softmax, "WORDS_AT_A_TIME", 7)
    layer = make("words", head).to(gpu.device).softmax
    hidden = torch.ones(N_WORDS, 5, device=gpu.device, requires_grad=True)
    targets = torch.arange(N_WORDS)
    with gpu.never_waits():
        layer.loss(hidden, targets).backward()
        assert layer.log_probs(hidden, targets).device == gpu.device
    assert hidden.grad.device == gpu.device
    layer.loss(hidden, targets.to(gpu.device)).backward()
    # Only the adaptive softmax copies the targets to the host; nothing else is copied.
    assert gpu.to_host == ([(N_WORDS,)] if head == "adaptive" else [])


# Inference


def assert_vectors(bilm, sentences, state, device, **options):
    """Run without and with a state, check the results and return the new state."""
    stateless, none = bilm.run(sentences, **options)
    stateful, state = bilm.run(sentences, state, **options)
    assert none is None and state.h.device == state.c.device == device
    for x, y, sentence in zip(stateless, stateful, sentences, strict=True):
        n_layers = bilm.config.lstm.n_layers
        assert x.shape == y.shape == (len(sentence), n_layers + 1, 10)
        assert x.device == y.device == device
    return state


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.slow
def test_vectors_never_wait(gpu, kind):
    bilm = make(kind).to(gpu.device)
    state = State.zeros(bilm.config.lstm, 1, bilm.weight)  # fewer rows than sentences
    with gpu.never_waits():
        assert bilm.run([]) == ([], None)
        state = assert_vectors(bilm, SENTENCES, state, gpu.device)
        assert_vectors(bilm, SENTENCES, state, gpu.device, max_batch_tokens=1)


def test_each_step_runs_the_whole_batch(gpu):
    """A GPU gets padded batches: sentences that have ended stay in the products of the
    LSTMs, which therefore all have the same size. (A CPU leaves them out.)"""
    bilm = make("words").to(gpu.device)
    lengths = [4, 3, 2, 1]
    state = State.zeros(bilm.config.lstm, len(lengths), bilm.weight)
    n_steps = max(lengths) + 2  # with the boundaries
    with gpu.never_waits():
        bilm.run([["bad"] * n for n in lengths], state)
    # Each of 2 layers has a recurrent product and a projection, for both directions.
    for width in (5, 7):
        assert gpu.products.count((2, len(lengths), width)) == 2 * n_steps


@pytest.mark.parametrize(
    "cache_words, recent, earlier",  # keys that a repeated call encodes again
    [(0, 5, 5), (5, 0, 5), (1000, 0, 0)],
    ids=["unused", "full after each call", "growing"],
)
@pytest.mark.slow
def test_word_cache_never_waits(gpu, monkeypatch, cache_words, recent, earlier):
    monkeypatch.setattr(word_cache, "CHUNK", 2)
    bilm = make("bytes").to(gpu.device)
    bilm.cache_words = cache_words
    encoded = []
    word_ids = bilm.encoder.word_ids
    original = word_ids.encode
    monkeypatch.setattr(
        word_ids, "encode", lambda keys: encoded.extend(keys) or original(keys)
    )
    new = [["three", "new", "words"]]
    with gpu.never_waits():
        for sentences in (SENTENCES, new):
            assert bilm.run(sentences)[0][0].device == gpu.device
        for sentences, n_encoded in ((new, recent), (SENTENCES, earlier)):
            encoded.clear()
            bilm.run(sentences)
            assert len(encoded) == n_encoded
        bilm.clear_cache()
        assert bilm.run(SENTENCES)[0][0].device == gpu.device


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.slow
def test_embed_copies_its_results_to_the_host_and_nothing_else(gpu, kind):
    bilm = make(kind).to(gpu.device)
    n_layers = bilm.config.lstm.n_layers
    shapes = [(n_layers + 1, len(sentence), 10) for sentence in SENTENCES]
    for stateful in (False, True, True):
        gpu.to_host.clear()
        found = bilm.embed(SENTENCES, stateful, max_batch_tokens=4)
        assert [x.shape for x in found] == shapes
        assert all(isinstance(x, np.ndarray) for x in found)
        assert sorted(gpu.to_host) == sorted(shapes)


@pytest.mark.parametrize("kind", ENCODERS)
def test_model_is_saved_from_a_gpu_and_loaded_onto_it(gpu, kind, tmp_path):
    make(kind, "sampled").to(gpu.device).save(tmp_path)
    bilm = load_bilm(tmp_path, device=str(gpu.device))
    assert {weight.device for weight in bilm.parameters()} == {gpu.device}
    with gpu.never_waits():
        assert bilm.run(SENTENCES)[0][0].device == gpu.device


@pytest.fixture
def gpu():
    with fake_cuda() as gpu:
        yield gpu
