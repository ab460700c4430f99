"""Run the code for Thinc on a simulated GPU (see the fixture `device`).

Mistakes that would fail on a GPU must fail here too. The code may make the host (the
CPU) wait for the device (the GPU) only where this cannot be avoided."""

import copy
import operator

import numpy as np
import pytest
import spacy
import torch
from helpers.fake_cuda import fake_cuda
from helpers.pipelines import save_bilm
from helpers.strict_ops import TRANSFERS
from spacy.tokens import Doc
from thinc.api import Adam, use_ops

from spacy_elmo.layers import elmo_model
from spacy_elmo.layers.elmo_model import (
    ElmoModel,
    begin_layers,
    get_shim,
    predict_layers,
    predict_vectors,
)
from spacy_elmo.layers.mix import ElmoMix, get_mix
from spacy_elmo.layers.segments import segment_doc
from spacy_elmo.layers.settings import EncodingSettings
from spacy_elmo.layers.types import Layers
from spacy_elmo.pipeline.hand_over import HandOver

TEXTS = ["Ann saw  Bob in Paris .", "", "The saw cut wood . It \n rained .", " ", "Tea"]


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return str(save_bilm(tmp_path_factory.mktemp("bilm")))


# The device


MISTAKES = {
    "to numpy": lambda x, host, ops: np.asarray(x),
    "to numpy, list": lambda x, host, ops: np.array([x, x]),
    "to torch": lambda x, host, ops: torch.from_numpy(x),
    "written to the host": lambda x, host, ops: host.__setitem__(0, x[0]),
    "sum of both": lambda x, host, ops: x + host,
    "sum of both, swapped": lambda x, host, ops: host + x,
    "sum in place": lambda x, host, ops: operator.iadd(x, host),
    "sum in place, swapped": lambda x, host, ops: operator.iadd(host, x),
    "product of both": lambda x, host, ops: x @ host,
    "gemm of both": lambda x, host, ops: ops.gemm(x, host),
    "comparison of both": lambda x, host, ops: x > host,
    "function of both": lambda x, host, ops: ops.xp.maximum(x, host),
    "function of the host's": lambda x, host, ops: ops.xp.exp(host),
    "joined": lambda x, host, ops: ops.xp.concatenate([x, host]),
    "joined by numpy": lambda x, host, ops: np.concatenate([x, host]),
    "assigned": lambda x, host, ops: x.__setitem__(0, host[0]),
    "list assigned": lambda x, host, ops: x.__setitem__(0, [1.0, 2.0, 3.0]),
    "list added": lambda x, host, ops: x + [1.0, 2.0, 3.0],
    "range": lambda x, host, ops: range(x.sum()),
    "index of a list": lambda x, host, ops: TEXTS[x.argmax()],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mixing_device_and_host_is_refused(device, mistake):
    host = np.ones((3, 3), dtype="float32")
    with pytest.raises((TypeError, ValueError)):
        MISTAKES[mistake](device.ops.asarray(host), host, device.ops)


TO_THE_HOST = {
    "float": lambda x, ops: float(x[0, 0]),
    "int": lambda x, ops: int(x[0, 0]),
    "truth": lambda x, ops: bool(x.any()),
    "condition": lambda x, ops: 1 if x.sum() > 0 else 0,
    "builtin": lambda x, ops: max(x[0, :2]),
    "item": lambda x, ops: x.sum().item(),
    "list": lambda x, ops: x.tolist(),
    "get": lambda x, ops: x.get(),
    "to_numpy": lambda x, ops: ops.to_numpy(x),
    "text": lambda x, ops: f"{x[0]}",
    "mask": lambda x, ops: x[x > 0],
    "nonzero": lambda x, ops: ops.xp.nonzero(x),
    "equal": lambda x, ops: bool(ops.xp.array_equal(x, x)),
    "in a slice": lambda x, ops: x[: x.argmax()],
}
ON_THE_DEVICE = {
    "reduction": lambda x, host, ops: 2 * x.sum() + np.float32(1),
    "iteration": lambda x, host, ops: [y / 2 for y in x[0]],
    "sum of a list": lambda x, host, ops: sum(x[0]),
    "numpy's function": lambda x, host, ops: np.exp(np.concatenate([x, x])),
    "index from the host": lambda x, host, ops: x[np.array([0, 2])],
    "copy": lambda x, host, ops: copy.deepcopy(x),
    "assignment": lambda x, host, ops: x.__setitem__(0, x[1]),
    "from the host": lambda x, host, ops: ops.asarray(host) + ops.xp.array(host),
    "kernel": lambda x, host, ops: ops.maxout(x.reshape(3, 1, 3)),
}


@pytest.mark.parametrize("what", [*TO_THE_HOST, *ON_THE_DEVICE])
def test_transfers_are_counted(device, what):
    host = np.ones((3, 3), dtype="float32")
    x = device.ops.asarray(host)
    if what in TO_THE_HOST:
        TO_THE_HOST[what](x, device.ops)
    else:
        ON_THE_DEVICE[what](x, host, device.ops)
    if device.counts:
        assert len(TRANSFERS) == (what in TO_THE_HOST)


def test_kernels_refuse_arrays_that_are_not_contiguous(device):
    x = device.ops.xp.ones((4, 6), dtype="float32")[:, :3]
    if device.counts:  # cupy does not check this, and computes wrong numbers
        with pytest.raises(ValueError, match="contiguous"):
            device.ops.seq2col(x, 1)
    assert device.ops.seq2col(device.ops.as_contig(x), 1).shape == (4, 9)


def test_transfers_are_counted_for_the_function_that_asks_for_them(device):
    mix = ElmoMix()
    mix.initialize(X=Layers([device.ops.alloc3f(1, 3, 4)]))
    with device.transfers("mix.py:get_mix"):
        shares, gamma = get_mix(mix)
    assert shares == pytest.approx([1 / 3] * 3) and gamma == 1.0
    with device.transfers():
        device.host(mix.get_param("w"))  # not counted, because the test asks for it


# Code that uses torch


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of Fake")
@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.slow
def test_encoding_docs_never_waits(bilm, stateful, monkeypatch):
    settings = EncodingSettings(stateful=stateful, window=2, overlap=1)
    model = ElmoModel(bilm, settings, frozen=False)
    lm = get_shim(model).bilm
    nlp = spacy.blank("xx")
    # The docs are short, because operations on fake tensors are slow.
    docs = [segment_doc(nlp(text), settings) for text in ("a  b c", "", " ")]
    # Fake tensors cannot be converted to arrays.
    monkeypatch.setattr(elmo_model, "to_array", lambda ops, tensor: tensor.detach())
    monkeypatch.setattr(elmo_model, "to_tensor", lambda array, device: array)
    with fake_cuda() as gpu:
        lm.to(gpu.device)
        with gpu.never_waits():
            found, kept = predict_vectors(model, docs, [0.5, 0, 0.5], keep_layers=True)
            layers = predict_layers(model, docs)
            outputs, backprop = begin_layers(model, docs)
            backprop([torch.ones_like(output) for output in outputs.data])
        tensors = [*found, *kept, *layers, *outputs.data, lm.weight.grad]
        assert {tensor.device for tensor in tensors} == {gpu.device}


# The component


def make_nlp(bilm, **settings):
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"bilm": bilm, **settings})
    return nlp


def on_numpy(bilm, **settings):
    with use_ops("numpy"):
        return list(make_nlp(bilm, **settings).pipe(TEXTS))


def assert_close(device, array, expected):
    np.testing.assert_allclose(device.host(array), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("store_dtype", ["float32", "float16"])
@pytest.mark.parametrize("store_layers", ["device", "cpu", "none"])
@pytest.mark.parametrize("more", [{}, {"cache_layers": "always"}])
def test_the_component_transfers_only_what_it_stores_on_the_cpu(
    device, bilm, store_layers, store_dtype, more
):
    stored = {"store_layers": store_layers, "store_dtype": store_dtype}
    nlp = make_nlp(bilm, **stored, **more)
    nlp.initialize()  # loads the weights
    here = store_layers == "device"
    with device.transfers(*([] if here else ["component.py:set_annotations"])):
        docs = [nlp(TEXTS[0]), *nlp.pipe(TEXTS, batch_size=2)][1:]
    for doc, expected in zip(docs, on_numpy(bilm)):
        assert_close(device, doc.tensor, expected.tensor)
        with device.transfers():
            view = doc._.elmo
            arrays = [doc.tensor, view.vectors]
            arrays += [] if store_layers == "none" else [view.layers]
            for token in doc[:1]:
                arrays += [token.vector, token._.elmo, doc[:1]._.elmo]
        assert {device.has(array) for array in arrays} == {here}
        same = Doc(nlp.vocab).from_bytes(doc.to_bytes())
        assert_close(device, same.tensor, expected.tensor)
        if store_layers != "none":
            np.testing.assert_array_equal(
                same._.elmo.layers, device.host(view.layers), strict=True
            )


@pytest.mark.filterwarnings("ignore:.W007")
@pytest.mark.parametrize(
    "settings",
    [
        {"stateful": True, "window": 3, "overlap": 0},
        {"window": 3, "overlap": 1, "max_batch_tokens": 4},
        {"mix": [0.0, 0.5, 0.5], "frozen": False},
    ],
)
def test_no_setting_of_the_encoding_needs_transfers(device, bilm, settings):
    nlp = make_nlp(bilm, **settings)
    nlp.initialize()
    with device.transfers():
        docs = list(nlp.pipe(TEXTS))
        assert docs[0].similarity(docs[-1]) < 1
    for doc, expected in zip(docs, on_numpy(bilm, **settings)):
        assert device.has(doc.tensor)
        assert_close(device, doc.tensor, expected.tensor)


# Mixes


MIXES = [{}, {"layer_norm": True, "l2": 0.1}, {"fixed": [0.0, 0.5, 0.5]}]


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("options", [*MIXES, {"dropout": 0.5}])
def test_the_mix_trains_without_transfers(device, options, frozen):
    rng = np.random.default_rng(0)
    hosts = [rng.normal(size=(n, 3, 4)).astype("float32") for n in (5, 0, 2)]

    def run(ops):
        mix = ElmoMix(**options)
        data = [ops.asarray3f(host) for host in hosts]
        mix.initialize(X=Layers(data))
        outputs = [*mix.predict(Layers(data, frozen))]
        vectors, backprop = mix.begin_update(Layers(data, frozen))
        gradients = backprop([ops.xp.ones_like(x) for x in vectors])
        assert (gradients is None) == frozen
        outputs += [*vectors, *(gradients or [])]
        outputs += [mix.get_grad(name) for name in mix.grad_names]
        mix.finish_update(Adam())
        return [*outputs, mix.get_param("w"), mix.get_param("gamma")]

    with device.transfers():
        found = run(device.ops)
    with use_ops("numpy"):
        expected = run(ElmoMix().ops)
    assert all(map(device.has, found))
    if "dropout" not in options:  # the random numbers of a GPU differ
        for x, y in zip(found, expected, strict=True):
            assert_close(device, x, y)


def test_hand_over_to_listeners_that_take_some_of_the_docs(device):
    nlp = spacy.blank("xx")
    docs = [nlp("A b"), nlp("c"), nlp("d")]
    layers = [device.ops.alloc3f(len(doc), 3, 4) for doc in docs]
    received = []
    hand_over = HandOver(docs, Layers(layers, frozen=False), received.extend)
    for chosen in ([docs[0]], [docs[2], docs[0]]):
        taken, backprop = hand_over.take(chosen)
        with device.transfers():
            backprop([h + 1 for h in taken.data])
    with device.transfers("hand_over.py:finish") as found:
        assert hand_over.finish() == 2 * 12 * 2**2 + 12
    assert [float(h.mean()) for h in received] == [2.0, 0.0, 1.0]
    assert all(map(device.has, received)) and len(found) == device.counts
