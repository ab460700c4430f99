"""Test fine-tuning of the biLM together with tasks, for both orders in which spaCy may
call update and finish_update."""

import numpy as np
import pytest
import torch
from helpers.tasks import (
    elmo_alone,
    learn,
    make_nlp,
    save_tiny,
    train,
    weights_of,
    with_elmo,
)
from thinc.api import SGD, Adam


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilm"))


def update_like_spacy_train(nlp, batches, optimizer):
    """Make one training step like `spacy train`, with the gradients of all batches."""
    for batch in batches:
        nlp.update(batch, sgd=False)
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)


def update_like_a_loop(nlp, batches, optimizer):
    """Make one training step like a user's own loop, which calls only nlp.update. The
    biLM is updated when the next step begins."""
    (batch,) = batches
    nlp.update(batch, sgd=optimizer)


@pytest.mark.parametrize("update", [update_like_spacy_train, update_like_a_loop])
@pytest.mark.slow
def test_fine_tuning_encodes_each_batch_once(bilm, encoded, update):
    tasks = {"tagger": with_elmo("both"), "ner": elmo_alone()}
    nlp, examples = make_nlp(bilm, tasks, frozen=False)
    before = weights_of(nlp)
    encoded.clear()
    optimizer = Adam(0.01)
    for _ in range(3):
        update(nlp, [examples], optimizer)
    assert encoded == [3, 3, 3]
    assert all((before[key] != w).any() for key, w in weights_of(nlp).items())
    after = weights_of(nlp)
    learn(nlp, examples, tasks)
    assert all((after[key] != w).any() for key, w in weights_of(nlp).items())


def test_both_orders_of_calls_give_the_same_weights(bilm):
    results = []
    for update in (update_like_spacy_train, update_like_a_loop):
        tasks = {"tagger": with_elmo("both"), "senter": elmo_alone()}
        nlp, examples = make_nlp(bilm, tasks, frozen=False)
        optimizer = Adam(0.01)
        for _ in range(3):
            update(nlp, [examples], optimizer)
        nlp.get_pipe("elmo").finish_update(optimizer)  # the last step of the loop
        results.append(weights_of(nlp))
    for key, weight in results[0].items():
        torch.testing.assert_close(weight, results[1][key], rtol=0, atol=1e-6)


def test_accumulated_gradients_equal_those_of_one_batch(bilm):
    results = []
    for parts in ([[0, 1, 2]], [[0], [1, 2]]):
        tasks = {"tagger": with_elmo("both"), "senter": elmo_alone()}
        nlp, examples = make_nlp(bilm, tasks, frozen=False)
        # A new tagger passes on no gradients, because its output layer is all zeros.
        train(nlp, examples, 2)
        nlp.get_pipe("elmo").finish_update(Adam(0.01))
        before = weights_of(nlp)
        batches = [[examples[number] for number in part] for part in parts]
        update_like_spacy_train(nlp, batches, SGD(0.01, L2=0.0, grad_clip=0.0))
        results.append({k: w - before[k] for k, w in weights_of(nlp).items()})
    for key, step in results[0].items():
        assert step.abs().max() > 1e-5
        torch.testing.assert_close(step, results[1][key], rtol=1e-3, atol=1e-6)


def test_averaged_weights_are_used_within_use_params(bilm):
    nlp, examples = make_nlp(bilm, {"tagger": with_elmo("both")}, frozen=False)
    optimizer = Adam(0.05, use_averages=True)
    for _ in range(4):
        update_like_spacy_train(nlp, [examples], optimizer)
    text, elmo = examples[0].text, nlp.get_pipe("elmo")
    before, vectors = weights_of(nlp), nlp(text).tensor
    with nlp.use_params(optimizer.averages):
        inside, averaged_vectors = weights_of(nlp), nlp(text).tensor
    for name, weight in inside.items():
        average = optimizer.averages[elmo.model.shims[0].id, f"bilm.{name}"]
        assert np.array_equal(weight.numpy(), average)
        assert not torch.equal(weight, before[name])
        assert torch.equal(before[name], weights_of(nlp)[name])
    assert not np.allclose(vectors, averaged_vectors, atol=1e-4)
    assert np.array_equal(vectors, nlp(text).tensor)
    # Training continues with the weights before they were replaced by averages.
    update_like_spacy_train(nlp, [examples], SGD(0.0, L2=0.0, grad_clip=0.0))
    assert all(torch.equal(before[key], w) for key, w in weights_of(nlp).items())
