"""Compare ElmoMix with its formula, and gradients with finite differences."""

import numpy as np
import pytest
from helpers.tasks import (
    bilm_of,
    elmo_alone,
    make_examples,
    make_nlp,
    save_tiny,
    train,
    with_elmo,
)
from spacy.training import Example
from thinc.api import SGD, set_dropout_rate

from spacy_elmo.layers.mix import ElmoMix, get_mix
from spacy_elmo.layers.types import Layers

LENGTHS = [3, 0, 5]


def make_layers(*, frozen=False, n_layers=3, width=4):
    rng = np.random.default_rng(0)
    shapes = [(length, n_layers, width) for length in LENGTHS]
    return Layers([rng.normal(0, 1, s).astype("float32") for s in shapes], frozen)


def make_mix(layers, **options):
    mix = ElmoMix(**options)
    mix.initialize(X=layers)
    return mix


def formula(h, w, gamma, *, layer_norm=True, fixed=None):
    """Compute the mix with the formula of the ELMo paper, in float64.

    h: The layers, (n_tokens, n_layers, width).
    w: The weights before the softmax, (n_layers,).
    RETURNS (np.ndarray): (n_tokens, width)
    """
    s = np.exp(w) / np.exp(w).sum() if fixed is None else np.array(fixed)
    if layer_norm:
        mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
        h = (h - mean) / np.sqrt(variance + 1e-5)
    return gamma * np.einsum("j,njd->nd", s, h)


def slope(f, x, step=1e-5):
    """Compute the gradient of f at x by central differences."""
    x = np.array(x, dtype="float64")
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        result[index] = (f(up) - f(down)) / (2 * step)
    return result


# The formula

OPTIONS = [
    {},
    {"layer_norm": False},
    {"layer_norm": False, "init_weights": [0.5, -1.0, 2.0], "init_gamma": 0.7},
    {"layer_norm": False, "fixed": [0.2, 0.3, -1.0], "init_gamma": -2.0},
    {"init_weights": [1.0, 0.0, -0.3]},
    {"fixed": [0.0, 1.0, 0.0]},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_forward_computes_the_formula(options):
    layers = make_layers()
    mix = make_mix(layers, **options)
    expected_options = {k: options[k] for k in ("layer_norm", "fixed") if k in options}
    w, gamma = options.get("init_weights", np.zeros(3)), options.get("init_gamma", 1.0)
    for output in (mix.predict(layers), mix.begin_update(layers)[0]):
        assert [len(vectors) for vectors in output] == LENGTHS
        for h, vectors in zip(layers.data, output):
            expected = formula(h.astype("float64"), w, gamma, **expected_options)
            assert vectors.dtype == "float32"
            np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-5)


def test_get_mix_returns_shares_and_gamma():
    layers = make_layers()
    s, gamma = get_mix(make_mix(layers, init_weights=[0, np.log(2), 0], init_gamma=3.0))
    assert s == pytest.approx([0.25, 0.5, 0.25]) and gamma == 3.0
    s, gamma = get_mix(make_mix(layers, fixed=[1.0, 0.0, 5.0]))
    assert s == [1.0, 0.0, 5.0] and gamma == 1.0
    assert get_mix(make_mix(layers))[0] == pytest.approx([1 / 3] * 3)
    # Large values in w do not overflow.
    assert get_mix(make_mix(layers, init_weights=[999.0, 0, 0]))[0] == [1, 0, 0]


def test_layer_norm_normalizes_each_token_in_each_layer():
    layers = make_layers()
    for j in range(3):
        mix = make_mix(layers, layer_norm=True, fixed=[float(k == j) for k in range(3)])
        for vectors in mix.predict(layers):
            np.testing.assert_allclose(vectors.mean(1), 0, atol=1e-5)
            np.testing.assert_allclose(vectors.std(1), 1, atol=1e-3)
    # The result does not depend on the other docs, and the zeros of whitespace tokens
    # stay zeros.
    alone = Layers([layers.data[0], np.zeros((1, 3, 4), "float32")])
    found = mix.predict(alone)
    assert np.array_equal(found[0], mix.predict(layers)[0])
    assert not found[1].any()


@pytest.mark.parametrize("name", ["fixed", "init_weights"])
def test_wrong_numbers_of_weights_are_refused(name):
    with pytest.raises(ValueError) as caught:
        make_mix(make_layers(), **{name: [0.5, 0.5]})
    assert str(caught.value) == (
        f"ElmoMix: {name} has 2 numbers; expected 3, one for each layer of the biLM "
        "and one for its token vectors"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"fixed": [1.0, 0, 0], "init_weights": [1.0, 0, 0]},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"l2": -1.0},
    ],
)
def test_bad_arguments_are_refused(options):
    with pytest.raises(ValueError, match="expected"):
        ElmoMix(**options)


# Dropout


def test_the_default_dropout_is_that_of_the_training():
    layers = make_layers(width=2000)
    mix = make_mix(layers, layer_norm=False)
    plain = mix.predict(layers)
    for rate in (0.0, 0.25, 0.75):
        set_dropout_rate(mix, rate)
        check_dropout(mix, layers, plain, rate)


def test_a_given_dropout_is_not_changed_by_the_training():
    layers = make_layers(width=2000)
    mix = make_mix(layers, layer_norm=False, dropout=0.5)
    plain = make_mix(layers, layer_norm=False).predict(layers)
    for rate in (0.0, 0.9):
        set_dropout_rate(mix, rate)
        check_dropout(mix, layers, plain, 0.5)
    mix = make_mix(layers, layer_norm=False, dropout=0.0)
    set_dropout_rate(mix, 0.9)
    check_dropout(mix, layers, plain, 0.0)


def check_dropout(mix, layers, plain, rate):
    assert all(np.array_equal(a, b) for a, b in zip(mix.predict(layers), plain))
    output, backprop = mix.begin_update(layers)
    output, expected = np.concatenate(output), np.concatenate(plain)
    kept = output != 0
    assert kept.mean() == pytest.approx(1 - rate, abs=0.02)
    # Values that are not dropped are scaled up, and so are their gradients.
    np.testing.assert_allclose(output[kept], expected[kept] / (1 - rate), rtol=1e-5)
    gradients = np.concatenate(backprop([np.ones_like(array) for array in plain]))
    assert np.array_equal(gradients.any(1), kept)


# Gradients of the mix


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_match_finite_differences(options):
    layers = make_layers()
    mix = make_mix(layers, l2=0.0, **options)
    rng = np.random.default_rng(1)
    R = [rng.normal(0, 1, (length, 4)).astype("float32") for length in LENGTHS]
    _, backprop = mix.begin_update(layers)
    d_layers = backprop(R)

    h, r = np.concatenate(layers.data).astype("float64"), np.concatenate(R)
    w, gamma = options.get("init_weights", np.zeros(3)), options.get("init_gamma", 1.0)
    kind = {k: options[k] for k in ("layer_norm", "fixed") if k in options}
    expected = slope(lambda x: (formula(h, w, x, **kind) * r).sum(), gamma)
    np.testing.assert_allclose(mix.get_grad("gamma"), [expected], rtol=1e-4)
    expected = slope(lambda x: (formula(x, w, gamma, **kind) * r).sum(), h)
    np.testing.assert_allclose(np.concatenate(d_layers), expected, rtol=1e-3, atol=1e-5)
    assert [d.shape for d in d_layers] == [h.shape for h in layers.data]
    if "fixed" in options:
        assert not mix.has_grad("w")
    else:
        expected = slope(lambda x: (formula(h, x, gamma, **kind) * r).sum(), w)
        np.testing.assert_allclose(mix.get_grad("w"), expected, rtol=1e-3, atol=1e-5)


def test_the_gradient_of_frozen_layers_is_not_computed():
    layers = make_layers(frozen=True)
    mix = make_mix(layers)
    output, backprop = mix.begin_update(layers)
    assert backprop(output) is None
    assert mix.has_grad("w") and mix.has_grad("gamma")


def test_l2_adds_its_gradient_in_each_batch():
    layers = make_layers()
    w = np.array([0.5, -1.0, 2.0], dtype="float32")
    mix = make_mix(layers, l2=0.3, init_weights=w.tolist())
    for n_batches in (1, 2):
        output, backprop = mix.begin_update(layers)
        backprop([0 * vectors for vectors in output])
        np.testing.assert_allclose(mix.get_grad("w"), n_batches * 2 * 0.3 * w)
    mix.finish_update(SGD(0.1, L2=0.0, grad_clip=0.0))
    np.testing.assert_allclose(mix.get_param("w"), w - 0.1 * 4 * 0.3 * w, rtol=1e-6)


# Gradients that reach the biLM through the mix, concatenation and listener


class Recorder:
    """An optimizer that records gradients and changes nothing."""

    def __init__(self):
        self.gradients = {}

    def __call__(self, key, weights, gradient):
        self.gradients[key[1]] = gradient.copy()
        return weights, gradient


def recorded(nlp):
    recorder = Recorder()
    nlp.get_pipe("elmo").finish_update(recorder)
    return recorder.gradients


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilm"))


def tok2vecs(nlp, names):
    return [nlp.get_pipe(name).model.get_ref("tok2vec") for name in names]


NORMED = with_elmo("input", layer_norm=True)
PLAIN = elmo_alone(layer_norm=False, init_gamma=-2.0)


@pytest.mark.parametrize(
    "tasks, chosen",
    [
        ({"tagger1": with_elmo("both", encode="mish")}, [2, 0]),
        ({"tagger1": NORMED, "tagger2": PLAIN}, [0, 1, 2]),
        ({"tagger1": with_elmo("output"), "tagger2": NORMED}, [1]),
    ],
)
@pytest.mark.slow
def test_gradients_of_the_bilm_match_finite_differences(bilm, tasks, chosen):
    """Compare with the slope of a loss: the sum of the outputs of all tasks, multiplied
    by random numbers R. The last task gets only the chosen docs."""
    nlp, examples = make_nlp(bilm, tasks, frozen=False)
    models = tok2vecs(nlp, tasks)
    docs = [example.predicted for example in examples]
    batches = [docs] * (len(models) - 1) + [[docs[number] for number in chosen]]
    rng = np.random.default_rng(2)
    predicted = [model.predict(batch) for model, batch in zip(models, batches)]
    R = [[rng.normal(0, 1, y.shape).astype("float32") for y in Y] for Y in predicted]

    def run():
        nlp.get_pipe("elmo").update(examples)
        runs = [model.begin_update(batch) for model, batch in zip(models, batches)]
        return [Y for Y, _ in runs], [backprop for _, backprop in runs]

    def loss():
        pairs = [pair for Y, r in zip(run()[0], R) for pair in zip(Y, r)]
        return sum((y.astype("float64") * r).sum() for y, r in pairs)

    outputs, backprops = run()
    for output, prediction in zip(outputs, predicted):
        for y, expected in zip(output, prediction):
            np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)
    for backprop, r in zip(backprops, R):
        backprop(r)
    gradients = recorded(nlp)
    weights = dict(bilm_of(nlp).named_parameters())
    assert {f"bilm.{name}" for name in weights} == set(gradients)
    for name, weight in weights.items():
        gradient = gradients[f"bilm.{name}"].reshape(-1)
        for index in np.argsort(-np.abs(gradient))[:1].tolist():
            assert any(
                difference(weight, index, loss, step)
                == pytest.approx(gradient[index], rel=1e-2)
                for step in (2e-3, 5e-4, 1e-4)
            ), (name, index)


def difference(weight, index, loss, step):
    """Compute the slope of the loss for one number of a weight.

    step (float): How far to change the number. If it is too small, rounding in float32
        matters. If it is too large, another input of a maxout or a max pooling may
        become the maximum.
    """
    flat = weight.data.view(-1)
    before = flat[index].item()
    losses = []
    for value in (before + step, before - step):
        flat[index] = value
        losses.append(loss())
    flat[index] = before
    return (losses[0] - losses[1]) / (2 * step)


@pytest.mark.slow
def test_a_task_without_gold_does_not_change_the_gradients_of_others(bilm):
    tasks = {"tagger": with_elmo("both"), "parser": with_elmo(), "senter": elmo_alone()}
    nlp, examples = make_nlp(bilm, tasks, frozen=False)
    train(nlp, examples, 2)
    recorded(nlp)
    no_tree = [Example(e.x, e.y.copy()) for e in make_examples(nlp)]
    for example in no_tree:
        for token in example.reference:
            token.dep_ = ""

    def gradients(examples, **options):
        nlp.update(examples, sgd=False, **options)
        return recorded(nlp)

    expected = gradients(examples, exclude=["parser"])
    found = gradients(no_tree)
    with_parser = gradients(examples)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-5)
        assert np.abs(with_parser[name] - gradient).max() > 1e-3
    # If the last task is left out, the gradients of the other tasks still arrive.
    expected = gradients(examples, exclude=["senter"])
    assert any(g.any() for g in expected.values())
    assert not gradients(examples, exclude=list(tasks))
