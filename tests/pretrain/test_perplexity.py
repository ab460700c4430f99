"""Compare perplexities with a slow and simple computation."""

import csv
import json
import math

import pytest
import torch
from helpers.command import call, text
from helpers.corpora import by_spacy
from helpers.pretraining import write_text

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
    NumpyBiLM,
    SoftmaxConfig,
)
from spacy_elmo.pretrain import perplexity
from spacy_elmo.pretrain.text_perplexity import measure_text
from spacy_elmo.text.tokenizers import Tokenization

KINDS = ["full", "sampled", "adaptive"]


@pytest.fixture
def path(tmp_path):
    return write_text(tmp_path / "text.txt", n_documents=4)


@pytest.fixture
def sentences(path):
    return by_spacy(path.read_text().split("\n"))


def make_bilm(kind, sentences, **lstm):
    """Make a biLM that knows two thirds of the words. Its weights are doubled, so that
    its predictions are far from uniform."""
    words = sorted({word for words in sentences for word in words})
    vocab = ["</S>", *words[::3], "<UNK>", *words[1::3], "<S>"]
    torch.manual_seed(0)
    bilm = BiLM(
        BiLMConfig(
            BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]]),
            LSTMConfig(**{"dim": 8, "projection_dim": 5, **lstm}),
            SoftmaxConfig(len(vocab), kind, n_samples=10),
            training={"lang": "xx"},
        ),
        vocab=vocab,
    )
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.mul_(2.0)
    return bilm


@pytest.fixture(params=KINDS)
def bilm(request, sentences):
    return make_bilm(request.param, sentences)


def numbers(bilm, words):
    unknown = bilm.vocab.index("<UNK>")
    return [bilm.vocab.index(w) if w in bilm.vocab else unknown for w in words]


def log_probs(bilm, hidden, words):
    """Return the log probabilities of words, (n_words,).

    hidden (Tensor): The output of the LSTMs for each word, (n_words, projection_dim).
    """
    head = bilm.softmax
    if bilm.config.softmax.type == "adaptive":
        logs = head.softmax.log_prob(hidden)
    else:
        logs = (hidden @ head.weight.t() + head.bias).log_softmax(1)
    assert logs.shape == (len(words), len(bilm.vocab))
    return logs[range(len(words)), numbers(bilm, words)].double()


@torch.no_grad()
def by_sentence(bilm, sentences):
    """Return the perplexity of each direction if all sentences start from zero states.
    For a sentence of n words, each direction makes n + 1 predictions."""
    width = bilm.config.lstm.projection_dim
    logs = [[], []]
    for words in sentences:
        top = bilm(bilm.prepare([words])).layers[-1, 0]
        logs[0].append(log_probs(bilm, top[:-1, :width], [*words, "</S>"]))
        logs[1].append(log_probs(bilm, top[1:, width:], ["<S>", *words]))
    return [math.exp(-torch.cat(direction).mean().item()) for direction in logs]


@torch.no_grad()
def by_stream(bilm, sentences):
    """Return the perplexity of each direction if LSTM states are carried through the
    whole text, which is computed token by token."""
    found = []
    for d, layers in enumerate(bilm.directions):
        keys, targets = [], []
        for words in sentences:
            begin, *inner, end = bilm.word_ids.keys(words)
            keys += [end, *reversed(inner)] if d else [begin, *inner]
            targets += [*words[::-1], "<S>"] if d else [*words, "</S>"]
        state = [
            (torch.zeros(1, layer.projection_dim), torch.zeros(1, layer.dim))
            for layer in layers
        ]
        hidden = []
        for key in keys:
            x = bilm.encoder(bilm.encoder.encode([key]))
            for j, layer in enumerate(layers):
                h, c = state[j]
                gates = torch.cat([x, h], 1) @ layer.weight + layer.bias
                h, c = state[j] = layer.step(gates, c)
                x = x + h if j and bilm.config.lstm.skip_connections else h
            hidden.append(x)
        logs = log_probs(bilm, torch.cat(hidden), targets)
        found.append(math.exp(-logs.mean().item()))
    return found


def check(result, expected):
    found = [result.forward, result.backward]
    assert found == pytest.approx(expected, rel=1e-5)
    # If both were equal, this would not notice that directions are swapped.
    assert abs(found[0] - found[1]) > 0.01 * found[0]
    assert result.mean == pytest.approx(sum(expected) / 2, rel=1e-5)


@pytest.mark.parametrize("n_tokens, n_slice", [(1, 1), (30, 50), (4096, 2**20)])
def test_sentence_by_sentence(bilm, path, sentences, monkeypatch, n_tokens, n_slice):
    monkeypatch.setattr(perplexity, "MAX_BATCH_TOKENS", n_tokens)
    monkeypatch.setattr(perplexity, "SLICE", n_slice)
    result = measure_text(bilm, [str(path)], Tokenization("xx"))
    check(result, by_sentence(bilm, sentences))
    words = [word for words in sentences for word in words]
    assert result.n_tokens == len(words)
    assert result.n_unknown == sum(word not in bilm.vocab for word in words) > 0


@pytest.mark.parametrize("carry", [False, True])
def test_engine_on_arrays_agrees(bilm, path, monkeypatch, carry):
    monkeypatch.setattr(perplexity, "MAX_BATCH_TOKENS", 30)
    monkeypatch.setattr(perplexity, "STREAM_WINDOW", 7)
    texts, tokenization = [str(path)], Tokenization("xx")
    expected = measure_text(bilm, texts, tokenization, carry=carry)
    on_arrays = NumpyBiLM(bilm.data)
    found = measure_text(on_arrays, texts, tokenization, carry=carry)
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n_steps", [1, 7, 256])
@pytest.mark.slow
def test_one_stream(bilm, path, sentences, monkeypatch, n_steps):
    monkeypatch.setattr(perplexity, "STREAM_WINDOW", n_steps)
    result = measure_text(bilm, [str(path)], Tokenization("xx"), carry=True)
    expected = by_stream(bilm, sentences)
    check(result, expected)
    assert expected != pytest.approx(by_sentence(bilm, sentences), rel=1e-3)


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_layers": 3, "skip_connections": False},
        {"dim": 5, "projection": False, "n_layers": 1},
        {"cell_clip": 0.1, "proj_clip": 0.1},
    ],
)
def test_other_sizes(path, sentences, sizes):
    bilm = make_bilm("full", sentences, **sizes)
    check(
        measure_text(bilm, [str(path)], Tokenization("xx")),
        by_sentence(bilm, sentences),
    )
    stream = measure_text(bilm, [str(path)], Tokenization("xx"), carry=True)
    check(stream, by_stream(bilm, sentences))


def test_threads_do_not_matter(path, sentences, two_threads):
    bilm = make_bilm("full", sentences)
    check(
        measure_text(bilm, [str(path)], Tokenization("xx")),
        by_sentence(bilm, sentences),
    )


# The command


@pytest.mark.parametrize("stream", [False, True])
def test_command_writes_json(bilm, path, sentences, tmp_path, stream):
    bilm.save(tmp_path / "bilm")
    out = tmp_path / "metrics" / "perplexity.json"
    args = [tmp_path / "bilm", path, "--output", out, *(["--stream"] * stream)]
    done = call("evaluate", *args)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    forward, backward = (by_stream if stream else by_sentence)(bilm, sentences)
    words = [word for words in sentences for word in words]
    n_unknown = sum(word not in bilm.vocab for word in words)
    assert found == {
        "forward": pytest.approx(forward, rel=1e-5),
        "backward": pytest.approx(backward, rel=1e-5),
        "mean": pytest.approx((forward + backward) / 2, rel=1e-5),
        "n_tokens": len(words),
        "unknown_rate": pytest.approx(n_unknown / len(words)),
    }
    for key, value in found.items():
        shown = f"{value:,}" if key == "n_tokens" else f"{value:.4g}"
        assert key in done.output and shown in done.output


def test_command_reads_tokenized_text(sentences, tmp_path):
    bilm = make_bilm("full", sentences)
    bilm.save(tmp_path / "bilm")
    lines = [["ban.", "a", "Don't"], ["x", ".", "y"]]
    (tmp_path / "a.txt").write_text("".join(" ".join(line) + "\n" for line in lines))
    out = tmp_path / "found.json"
    args = [tmp_path / "bilm", tmp_path / "a.txt", "-o", out, "--tokenized"]
    assert call("evaluate", *args).exit_code == 0
    forward, _ = by_sentence(bilm, lines)
    found = json.loads(out.read_text())
    assert found["forward"] == pytest.approx(forward, rel=1e-5)
    assert found["n_tokens"] == 6


def test_mean_surprisal_is_the_logarithm_of_perplexity(bilm, path, sentences, tmp_path):
    bilm.save(tmp_path / "bilm")
    out, table = tmp_path / "found.json", tmp_path / "new" / "words.tsv"
    args = [tmp_path / "bilm", path, "--output", out, "--surprisal", table]
    done = call("evaluate", *args)
    assert done.exit_code == 0, done.output
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    found = json.loads(out.read_text())
    for direction in ("forward", "backward"):
        bits = [float(row[direction]) for row in rows if row[direction]]
        expected = math.log2(found[direction])
        assert sum(bits) / len(bits) == pytest.approx(expected, abs=1e-4)
        assert len(bits) == sum(len(words) + 1 for words in sentences)
    expected = [
        (str(n), str(m), word)
        for n, words in enumerate(sentences, 1)
        for m, word in enumerate(["<S>", *words, "</S>"])
    ]
    assert [(row["sentence"], row["position"], row["word"]) for row in rows] == expected


def test_surprisal_needs_single_sentences(sentences, path, tmp_path):
    make_bilm("full", sentences).save(tmp_path / "bilm")
    table = tmp_path / "words.tsv"
    done = call("evaluate", tmp_path / "bilm", path, "--stream", "--surprisal", table)
    assert done.exit_code == 1
    assert "found --surprisal and --stream" in text(done)
    assert not table.exists()


def test_surprisal_needs_a_file_of_its_own(sentences, path, tmp_path):
    make_bilm("full", sentences).save(tmp_path / "bilm")
    options = ["--output", tmp_path / "x.json", "--surprisal", tmp_path / "x.json"]
    done = call("evaluate", tmp_path / "bilm", path, *options)
    assert done.exit_code == 1 and not (tmp_path / "x.json").exists()
    assert "for --output and --surprisal; expected two files" in text(done)


def test_problems_of_the_text_are_said(sentences, tmp_path):
    make_bilm("full", sentences).save(tmp_path / "bilm")
    (tmp_path / "a.txt").write_bytes(b"one\n" * 99 + b"\xff\xfe two\n")
    done = call("evaluate", tmp_path / "bilm", tmp_path / "a.txt", "--tokenized")
    assert done.exit_code == 0, done.output
    assert "Problems found in the text: 1 lines with invalid UTF-8" in text(done)


def test_command_says_one_sentence(sentences, path, tmp_path):
    bilm = make_bilm("full", sentences)
    bilm.save(tmp_path / "bilm")
    bilm.softmax, bilm.vocab = None, None
    bilm.config = BiLMConfig(bilm.config.encoder, bilm.config.lstm)
    bilm.save(tmp_path / "without")
    for source, name, expected in (
        ("without", path, "this biLM has no softmax with a vocabulary"),
        ("nowhere", path, "nowhere: no such file or folder"),
        ("bilm", "nowhere.txt", "nowhere.txt: no such file"),
    ):
        done = call("evaluate", tmp_path / source, name)
        assert done.exit_code == 1
        assert expected in text(done) and "Traceback" not in done.output


def test_weights_that_are_not_numbers_have_no_perplexity(sentences, path):
    bilm = make_bilm("full", sentences)
    with torch.no_grad():
        bilm.softmax.bias[0] = float("nan")
    tokenization = Tokenization("xx", None, True)
    with pytest.raises(ValueError, match="a loss that is not a number"):
        measure_text(bilm, [str(path)], tokenization)
