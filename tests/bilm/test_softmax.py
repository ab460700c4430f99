import math

import numpy as np
import pytest
import torch

from spacy_elmo.bilm import BiLM, BiLMConfig, SoftmaxConfig, softmax
from spacy_elmo.bilm.softmax import make_softmax

N_WORDS, PROJ, N = 50, 6, 17


def make(kind, **settings):
    torch.manual_seed(1)
    head = make_softmax(SoftmaxConfig(N_WORDS, kind, **settings), PROJ)
    if kind != "adaptive":  # torch initializes that one when it is made
        head.reset_parameters()
    return head.double()


@pytest.fixture
def hidden():
    torch.manual_seed(0)
    return torch.randn(N, PROJ, dtype=torch.float64)


@pytest.fixture
def targets():
    return torch.randint(0, N_WORDS, (N,), generator=torch.Generator().manual_seed(0))


def plain_log_probs(head, hidden, targets):
    logits = hidden @ head.weight.t() + head.bias
    return logits.log_softmax(1)[torch.arange(len(targets)), targets]


@pytest.mark.parametrize("n_logits", [1, 60, 10**6])
@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_log_probs_are_exact_in_any_chunks(
    monkeypatch, hidden, targets, kind, n_logits
):
    monkeypatch.setattr(softmax, "MAX_LOGITS", n_logits)
    monkeypatch.setattr(softmax, "WORDS_AT_A_TIME", 7)
    head = make(kind, n_samples=10)
    expected = plain_log_probs(head, hidden, targets)
    torch.testing.assert_close(head.log_probs(hidden, targets), expected)


def test_chunks_do_not_change_gradients(monkeypatch, hidden, targets):
    head = make("full")
    hidden.requires_grad_()
    variables = [hidden, head.weight, head.bias]
    loss = -plain_log_probs(head, hidden, targets).sum()
    expected = torch.autograd.grad(loss, variables)
    monkeypatch.setattr(softmax, "MAX_LOGITS", 30)
    monkeypatch.setattr(softmax, "WORDS_AT_A_TIME", 7)
    found = torch.autograd.grad(head.loss(hidden, targets), variables)
    torch.testing.assert_close(found, expected)


@pytest.mark.slow
def test_800k_words_never_have_all_logits_at_once(monkeypatch):
    sizes = []
    original = softmax.log_sum_exp

    def watched(hidden, weight, bias):
        sizes.append(len(hidden) * len(weight))
        return original(hidden, weight, bias)

    monkeypatch.setattr(softmax, "log_sum_exp", watched)
    head = make_softmax(SoftmaxConfig(800_000), 2)
    head.reset_parameters()
    hidden = torch.randn(64, 2, requires_grad=True)
    targets = torch.randint(0, 800_000, (64,))
    head.loss(hidden, targets).backward()
    assert max(sizes) <= softmax.MAX_LOGITS
    assert sum(sizes) >= 2 * 64 * 800_000  # once forward, once backward
    assert hidden.grad is not None and hidden.grad.abs().sum() > 0


def test_sampled_loss_on_all_words_is_the_full_loss(monkeypatch, hidden, targets):
    head = make("sampled", n_samples=N_WORDS - 1)
    everything = torch.arange(N_WORDS), 10**9  # so many draws that each word is certain
    monkeypatch.setattr(head, "draw", lambda device: everything)
    expected = -plain_log_probs(head, hidden, targets).sum()
    torch.testing.assert_close(head.loss(hidden, targets), expected)


def test_target_in_the_sample_does_not_count_against_itself(monkeypatch, hidden):
    head = make("sampled", n_samples=1)
    target = torch.tensor([3])
    monkeypatch.setattr(head, "draw", lambda device: (torch.tensor([3]), 5))
    assert head.loss(hidden[:1], target).item() == pytest.approx(0.0)


def test_sampled_loss_corrects_for_the_chance_of_being_drawn(monkeypatch, hidden):
    head = make("sampled", n_samples=2)
    target, sample, n_tries = torch.tensor([7]), torch.tensor([0, 40]), 9
    monkeypatch.setattr(head, "draw", lambda device: (sample, n_tries))

    def chance(word):
        p = math.log((word + 2) / (word + 1)) / math.log(N_WORDS + 1)
        return 1 - (1 - p) ** n_tries

    logits = [
        (hidden[0] @ head.weight[w] + head.bias[w]).item() - math.log(chance(w))
        for w in (7, 0, 40)
    ]
    expected = math.log(sum(map(math.exp, logits))) - logits[0]
    assert head.loss(hidden[:1], target).item() == pytest.approx(expected)


@pytest.mark.slow
def test_draws_are_distinct_and_have_the_expected_counts():
    torch.manual_seed(0)
    head = make("sampled", n_samples=10)
    n_draws, counts, chances = 4000, torch.zeros(N_WORDS), torch.zeros(N_WORDS)
    for _ in range(n_draws):
        sample, n_tries = head.draw()
        assert len(set(sample.tolist())) == len(sample) == 10
        counts[sample] += 1
        chances += head.log_expected_count(torch.arange(N_WORDS), n_tries).exp()
    torch.testing.assert_close(
        counts / n_draws, (chances / n_draws).float(), atol=0.03, rtol=0
    )
    assert counts[0] > counts[5] > counts[45]


def test_draws_repeat_with_the_seed():
    head = make("sampled", n_samples=30)
    torch.manual_seed(5)
    first = head.draw()[0]
    torch.manual_seed(5)
    assert torch.equal(head.draw()[0], first)


@pytest.mark.parametrize("cutoffs", [None, [3], [2, 10, 40]])
def test_adaptive_probabilities_sum_to_one(hidden, cutoffs):
    head = make("adaptive", cutoffs=cutoffs)
    total = sum(
        head.log_probs(hidden, torch.full((N,), word)).exp() for word in range(N_WORDS)
    )
    torch.testing.assert_close(total, torch.ones(N, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_training_lowers_the_loss_of_each_kind(hidden, targets, kind):
    head = make(kind, n_samples=20)
    before = -head.log_probs(hidden, targets).sum().item()
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        head.loss(hidden, targets).backward()
        optimizer.step()
    after = -head.log_probs(hidden, targets).sum().item()
    assert after < 0.5 * before


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_loss_of_no_tokens_is_zero(kind):
    head = make(kind, n_samples=20)
    hidden = torch.zeros(0, PROJ, dtype=torch.float64)
    assert head.log_probs(hidden, torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_language_model_agrees_with_the_reference(random_pair):
    words = ["<S>", "</S>", "<UNK>", "the", "snow", "눈"]
    sentence = ["the", "눈", "unheard-of", "snow", "the"]
    for seed in range(3):
        bilm, reference = random_pair(seed, n_words=len(words))
        targets = [words.index(w) if w in words else 2 for w in sentence]
        proj = bilm.config.lstm.projection_dim
        top = bilm(bilm.prepare([sentence])).layers[-1, 0]  # (n + 2, width)
        forward = bilm.softmax.log_probs(
            top[:-1, :proj], torch.tensor([*targets, words.index("</S>")])
        )
        backward = bilm.softmax.log_probs(
            top[1:, proj:], torch.tensor([words.index("<S>"), *targets])
        )
        expected = reference.log_probs(sentence, words)
        np.testing.assert_allclose(forward.detach(), expected[0], atol=1e-5)
        np.testing.assert_allclose(backward.detach(), expected[1], atol=1e-5)


def test_both_directions_share_one_softmax():
    bilm = BiLM(BiLMConfig(softmax=SoftmaxConfig(n_words=9)), initialize=False)
    names = [name for name, _ in bilm.named_parameters() if "softmax" in name]
    assert sorted(names) == ["softmax.bias", "softmax.weight"]


@pytest.mark.parametrize(
    "settings, key",
    [
        ({"type": "hierarchical"}, "type"),
        ({"type": "sampled", "n_samples": 50}, "n_samples"),
        ({"type": "adaptive", "cutoffs": [30, 10]}, "cutoffs"),
        ({"type": "adaptive", "cutoffs": [50]}, "cutoffs"),
    ],
)
def test_bad_sizes_of_a_softmax_are_named(settings, key):
    with pytest.raises(ValueError, match=f"'{key}'"):
        SoftmaxConfig(N_WORDS, **settings)
