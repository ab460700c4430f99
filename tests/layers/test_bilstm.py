"""Compare BiLSTMEncoder with torch, and check that docs do not see each other."""

import numpy as np
import pytest
import torch
from thinc.api import fix_random_seed, set_dropout_rate

from spacy_elmo.layers.bilstm import BiLSTMEncoder

WIDTH = 6
DIM = WIDTH // 2
LENGTHS = [4, 0, 7, 1, 4]


@pytest.fixture
def model():
    fix_random_seed(0)
    model = BiLSTMEncoder(width=WIDTH, depth=2)
    model.initialize()
    return model


def make_docs(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, WIDTH)).astype("float32") for n in LENGTHS]


def copy_to_torch(model):
    """Return torch's LSTM with the weights of the encoder. Its gates have another
    order, and a weight is transposed."""
    lstm = torch.nn.LSTM(WIDTH, DIM, len(model.layers), bidirectional=True).double()
    for k, layer in enumerate(model.layers):
        for direction, suffix in enumerate(["", "_reverse"]):
            for name, param in [
                ("weight_ih", "inputs"),
                ("weight_hh", "recurrent"),
                ("bias_ih", "bias"),
            ]:
                i, f, o, g = np.split(layer.get_param(param)[direction], 4, axis=-1)
                value = torch.tensor(np.concatenate([i, f, g, o], axis=-1).T.copy())
                getattr(lstm, f"{name}_l{k}{suffix}").data.copy_(value)
            getattr(lstm, f"bias_hh_l{k}{suffix}").data.zero_()
    return lstm


def test_outputs_and_gradients_are_those_of_torch(model):
    docs, d_outputs = make_docs(1), make_docs(2)
    outputs, backprop = model(docs, is_train=True)
    d_docs = backprop(d_outputs)
    lstm = copy_to_torch(model)
    for doc, output, d_output, d_doc in zip(docs, outputs, d_outputs, d_docs):
        assert output.shape == d_doc.shape == doc.shape
        if not len(doc):
            continue
        x = torch.tensor(doc, dtype=torch.float64, requires_grad=True)
        y, _ = lstm(x)
        y.backward(torch.tensor(d_output, dtype=torch.float64))
        np.testing.assert_allclose(output, y.detach(), atol=1e-5)
        np.testing.assert_allclose(d_doc, x.grad, atol=1e-5)
    for k, layer in enumerate(model.layers):
        for direction, suffix in enumerate(["", "_reverse"]):
            for name, param in [("weight_ih", "inputs"), ("weight_hh", "recurrent")]:
                expected = getattr(lstm, f"{name}_l{k}{suffix}").grad
                i, f, o, g = np.split(layer.get_grad(param)[direction], 4, axis=-1)
                found = np.concatenate([i, f, g, o], axis=-1).T
                np.testing.assert_allclose(found, expected, atol=1e-5)
            i, f, o, g = np.split(layer.get_grad("bias")[direction], 4)
            expected = getattr(lstm, f"bias_ih_l{k}{suffix}").grad
            np.testing.assert_allclose(np.hstack([i, f, g, o]), expected, atol=1e-5)


def test_docs_do_not_see_each_other(model):
    docs = make_docs(1)
    together = model.predict(docs)
    for doc, output in zip(docs, together):
        np.testing.assert_allclose(model.predict([doc])[0], output, atol=1e-6)


def test_no_tokens(model):
    assert model.predict([]) == []
    outputs, backprop = model([np.zeros((0, WIDTH), "float32")], is_train=True)
    assert [len(output) for output in outputs] == [0]
    assert [len(d) for d in backprop(outputs)] == [0]


def test_dropout_has_one_mask_for_a_doc():
    # One layer that adds up nothing: what it gets decides alone what it returns.
    fix_random_seed(0)
    model = BiLSTMEncoder(width=WIDTH, depth=1)
    model.initialize()
    set_dropout_rate(model, 0.5)
    doc = np.ones((5, WIDTH), "float32")
    _, backprop = model([doc, doc], is_train=True)
    first, second = backprop([doc, doc])
    for gradients in (first, second):
        dropped = gradients == 0
        assert dropped.any() and not dropped.all()
        assert (dropped == dropped[0]).all()
    assert ((first == 0) != (second == 0)).any()
    np.testing.assert_array_equal(model.predict([doc])[0], model.predict([doc])[0])


def test_weights_survive_saving(model):
    docs = make_docs(1)
    loaded = BiLSTMEncoder(width=WIDTH, depth=2).from_bytes(model.to_bytes())
    for before, after in zip(model.predict(docs), loaded.predict(docs)):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "options", [{"width": 5}, {"width": 0}, {"depth": 0}, {"dropout": 1.0}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match="BiLSTMEncoder: .*; expected"):
        BiLSTMEncoder(**{"width": WIDTH, **options})
